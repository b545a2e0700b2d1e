"""Django's admin, open only to staff with a second factor; signing in is allauth's business."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _

from nan.access import has_staff_access, staff_required


class AdminSite(admin.AdminSite):
    site_header = site_title = "NaN"
    index_title = _("Rows")

    def has_permission(self, request: HttpRequest) -> bool:
        return has_staff_access(request)

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Reached only without permission: the guard says what is missing, or asks to sign in."""
        return staff_required(lambda _request: redirect("admin:index"))(request)


class ReadOnly:
    """Rows that the system writes: nobody adds, changes or deletes them by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(ReadOnly, admin.ModelAdmin[Any]):
    pass


class ReadOnlyInline(ReadOnly, admin.TabularInline[Any, Any]):
    extra = 0
