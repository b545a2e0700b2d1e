from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class NanConfig(AppConfig):
    name = "nan"

    def ready(self) -> None:
        from nan import checks  # noqa: F401  (registers the system checks)


class NanAdminConfig(AdminConfig):
    default_site = "nan.admin.AdminSite"
