from django.urls import URLPattern, URLResolver, include, path

from inference import views
from inference.status import pages as status
from inference.usage import staff as usage_staff
from inference.usage import views as usage

urlpatterns: list[URLPattern | URLResolver] = [
    path("key/", views.key_page, name="key"),
    path("key/status", views.key_status, name="key_status"),
    path("key/create", views.key_create, name="key_create"),
    path("key/reveal", views.key_reveal, name="key_reveal"),
    path("key/rotate", views.key_rotate, name="key_rotate"),
    path("key/pause", views.key_pause, name="key_pause"),
    path("key/resume", views.key_resume, name="key_resume"),
    path("key/revoke", views.key_revoke, name="key_revoke"),
    path("usage/", usage.usage, name="usage"),
    path("usage/live", usage.usage_live, name="usage_live"),
    path("usage/usage.csv", usage.usage_csv, name="usage_csv"),
    path("staff/usage/", usage_staff.index, name="staff_usage"),
    path("staff/usage/<uuid:owner_ref>/", usage_staff.ask, name="staff_usage_ask"),
    path("staff/usage/looks/<int:pk>/", usage_staff.look, name="staff_usage_look"),
    path("status/", status.page, name="status"),
    path("status.json", status.data, name="status_data"),
    path("status.atom", status.feed, name="status_feed"),
    path("staff/", include("inference.staff.urls")),
]
