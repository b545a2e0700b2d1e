from django.conf import settings
from django.contrib import admin
from django.urls import include, path

from nan import language, ops

urlpatterns = [
    path("", include("members.urls")),
    path("", include("inference.urls")),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
    path("i18n/setlang/", language.choose, name="set_language"),
    path("healthz", ops.healthz),
    path("readyz", ops.readyz),
    path("metrics", ops.metrics),
]

handler500 = "nan.outage.server_error"

if settings.LOCAL_STACK:
    urlpatterns.append(path("dev/mail/", include("nan.devmail_urls")))
