"""Addresses of the fleet's pages, below /staff/."""

from django.urls import path

from inference.staff import catalogue, incidents, joining, servers, slots, swaps

urlpatterns = [
    path("servers/", servers.index, name="staff_servers"),
    path("servers/add/", servers.add, name="staff_server_add"),
    path("servers/join", joining.join, name="server_join"),
    path("servers/<slug:name>/", servers.detail, name="staff_server"),
    path("servers/<slug:name>/now", servers.now, name="staff_server_now"),
    path("servers/<slug:name>/waiting", servers.waiting, name="staff_server_waiting"),
    path("servers/<slug:name>/seats/", servers.seats, name="staff_server_seats"),
    path("servers/<slug:name>/out/", servers.take_out, name="staff_server_out"),
    path("servers/<slug:name>/back/", servers.put_back, name="staff_server_back"),
    path("servers/<slug:name>/replicas/", servers.add_replica, name="staff_replica_add"),
    path("servers/<slug:name>/fetch/", servers.fetch_weights, name="staff_server_fetch"),
    path("alerts/<int:pk>/dismiss/", servers.dismiss, name="staff_alert_dismiss"),
    path("incidents/", incidents.index, name="staff_incidents"),
    path("incidents/<int:pk>/", incidents.detail, name="staff_incident"),
    path("models/", catalogue.index, name="staff_models"),
    path("models/add/", catalogue.add, name="staff_model_add"),
    path("models/<str:name>/", catalogue.detail, name="staff_model"),
    path("models/<str:name>/edit/", catalogue.edit, name="staff_model_edit"),
    path("models/<str:name>/offer/", catalogue.offer, name="staff_model_offer"),
    path("slots/", slots.index, name="staff_slots"),
    path("slots/now", slots.now, name="staff_slots_now"),
    path("slots/add/", slots.add, name="staff_slot_add"),
    path("replicas/<int:pk>/", slots.replica, name="staff_replica"),
    path("replicas/<int:pk>/now", slots.replica_now, name="staff_replica_now"),
    path("replicas/<int:pk>/in/", slots.put_in, name="staff_replica_in"),
    path("replicas/<int:pk>/out/", slots.take_out, name="staff_replica_out"),
    path("replicas/<int:pk>/retry/", slots.retry, name="staff_replica_retry"),
    path("replicas/<int:pk>/remove/", slots.remove, name="staff_replica_remove"),
    path("swaps/", swaps.index, name="staff_swaps"),
    path("swaps/new/", swaps.new, name="staff_swap_new"),
    path("swaps/<int:pk>/", swaps.detail, name="staff_swap"),
    path("swaps/<int:pk>/now", swaps.swap_now, name="staff_swap_now"),
    path("swaps/<int:pk>/retry/", swaps.retry, name="staff_swap_retry"),
    path("swaps/<int:pk>/<slug:action>/", swaps.act, name="staff_swap_act"),
]
