from django.urls import URLPattern, URLResolver, include, path

from inference import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("key/", views.key_page, name="key"),
    path("key/status", views.key_status, name="key_status"),
    path("key/create", views.key_create, name="key_create"),
    path("key/reveal", views.key_reveal, name="key_reveal"),
    path("key/rotate", views.key_rotate, name="key_rotate"),
    path("key/pause", views.key_pause, name="key_pause"),
    path("key/resume", views.key_resume, name="key_resume"),
    path("key/revoke", views.key_revoke, name="key_revoke"),
    path("staff/", include("inference.staff.urls")),
]
