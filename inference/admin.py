"""Rows of this app for staff: to read, and to follow. Changes go through the use cases."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from inference.errors import words
from inference.models import Key, KeyEvent, KeyHolder, Reconciliation, Server
from nan.admin import ReadOnlyAdmin, ReadOnlyInline


class KeyInline(ReadOnlyInline):
    model = Key
    fields = ("hint", "state", "rpm", "parallel", "requested_at", "deleted_at", "last_used_on")
    readonly_fields = fields
    show_change_link = True


class KeyEventInline(ReadOnlyInline):
    model = KeyEvent
    fields = ("at", "what", "key", "actor", "reason")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("key", "actor")


@admin.register(KeyHolder)
class KeyHolderAdmin(ReadOnlyAdmin):
    list_display = ("member", "owner_ref", "own_rpm", "own_parallel", "paused", "held", "trouble")
    list_filter = (
        "held",
        "paused",
        ("own_rpm", admin.EmptyFieldListFilter),
        ("error_code", admin.EmptyFieldListFilter),
    )
    search_fields = ("=owner_ref", "member__email", "keys__hint")
    list_select_related = ("member",)
    readonly_fields = ("trouble",)
    inlines = (KeyInline, KeyEventInline)

    @admin.display(description=_("trouble"))
    def trouble(self, holder: KeyHolder) -> str:
        if not holder.error_code:
            return ""
        return f"{words(holder.error_code).operator} ({holder.attempts})"


@admin.register(Key)
class KeyAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "whose", "state", "rpm", "parallel", "requested_at", "last_used_on")
    list_filter = (
        "state",
        "outgoing",
        ("error_code", admin.EmptyFieldListFilter),
        "requested_at",
    )
    search_fields = ("=id", "=hint", "=token", "holder__member__email")
    list_select_related = ("holder__member",)
    date_hierarchy = "requested_at"
    readonly_fields = ("whose", "trouble")

    @admin.display(description=_("holder"), ordering="holder__member__email")
    def whose(self, key: Key) -> str:
        address = reverse("admin:inference_keyholder_change", args=[key.holder_id])
        return format_html('<a href="{}">{}</a>', address, key.holder.member or key.holder_id)

    @admin.display(description=_("trouble"))
    def trouble(self, key: Key) -> str:
        return str(words(key.error_code).operator) if key.error_code else ""


@admin.register(KeyEvent)
class KeyEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "what", "key_link", "holder_link", "actor", "reason")
    list_filter = ("what", "at")
    search_fields = ("holder__member__email", "reason", "=key__id")
    list_select_related = ("key", "holder__member", "actor")
    date_hierarchy = "at"

    @admin.display(description=_("key"))
    def key_link(self, event: KeyEvent) -> str:
        if event.key is None:
            return ""
        address = reverse("admin:inference_key_change", args=[event.key_id])
        return format_html('<a href="{}">{}</a>', address, event.key)

    @admin.display(description=_("holder"))
    def holder_link(self, event: KeyEvent) -> str:
        address = reverse("admin:inference_keyholder_change", args=[event.holder_id])
        return format_html('<a href="{}">{}</a>', address, event.holder.member or event.holder_id)


@admin.register(Reconciliation)
class ReconciliationAdmin(ReadOnlyAdmin):
    list_display = ("at", "ours", "theirs", "orphans", "spared", "missing", "differing")
    date_hierarchy = "at"


@admin.register(Server)
class ServerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # see nan.admin
    list_display = ("name", "seats", "active", "added_at")
    readonly_fields = ("added_at",)
    list_filter = ("active",)
    search_fields = ("name",)
