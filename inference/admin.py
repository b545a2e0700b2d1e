"""Rows of this app for staff: to read, and to follow. Changes go through the use cases."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.errors import words
from inference.fleet.words import words as fleet_words
from inference.models import (
    Alert,
    CatalogModel,
    FleetEvent,
    Incident,
    IncidentUpdate,
    Key,
    KeyEvent,
    KeyHolder,
    ProbeResult,
    ProbeRun,
    PublicName,
    Reconciliation,
    Replica,
    Server,
    Slot,
    Swap,
    SwapReplica,
)
from nan.admin import ReadOnlyAdmin, ReadOnlyInline


def linked(name: str, description: Any) -> Any:
    """A column that leads to the row of a foreign key; which the list must select."""

    @admin.display(description=description, ordering=name)
    def column(_admin: admin.ModelAdmin[Any], row: Any) -> str:
        to = getattr(row, name)
        if to is None:
            return ""
        address = reverse(f"admin:{to._meta.app_label}_{to._meta.model_name}_change", args=[to.pk])
        return format_html('<a href="{}">{}</a>', address, to)

    return column


@admin.display(description=_("error"))
def why(row: Replica | Swap) -> str:
    return str(fleet_words(row.error_code)) if row.error_code else ""


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
    key_link = linked("key", _("key"))

    @admin.display(description=_("holder"))
    def holder_link(self, event: KeyEvent) -> str:
        address = reverse("admin:inference_keyholder_change", args=[event.holder_id])
        return format_html('<a href="{}">{}</a>', address, event.holder.member or event.holder_id)


@admin.register(Reconciliation)
class ReconciliationAdmin(ReadOnlyAdmin):
    list_display = ("at", "ours", "theirs", "orphans", "spared", "missing", "differing")
    date_hierarchy = "at"


@admin.register(Server)
class ServerAdmin(admin.ModelAdmin[Server]):
    list_display = ("name", "seats", "active", "engine", "reported_at", "added_at")
    readonly_fields = ("added_at", "joined_at", "address", "driver", "engine", "reported_at")
    list_filter = ("active",)
    search_fields = ("name",)

    def get_readonly_fields(self, request: HttpRequest, obj: Server | None = None) -> Any:
        """Where engines stand, a server goes out of service with a drain, on the staff's page."""
        if obj is not None and obj.replicas.exists():
            return (*self.readonly_fields, "active")
        return self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Server | None = None) -> bool:
        """The staff's page does it: there its token, its queue and its alerts end with it."""
        return False


class FleetEventInline(ReadOnlyInline):
    model = FleetEvent
    fields = ("at", "what", "replica", "model", "detail", "actor")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> Any:
        found = super().get_queryset(request)
        return found.select_related("replica__server", "model", "actor")


class SwapReplicaInline(ReadOnlyInline):
    model = SwapReplica
    fields = ("position", "replica", "state", "state_since", "preflight")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("replica__server")


class PublicNameInline(ReadOnlyInline):
    model = PublicName
    fields = ("name", "model", "since", "retire_at", "retired_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("model")


@admin.register(CatalogModel)
class CatalogModelAdmin(ReadOnlyAdmin):
    """To be changed on the staff pages, whose form asks what a server would accept."""

    list_display = ("name", "title", "kind", "repo", "context_length", "gpus_needed", "offered")
    list_filter = ("kind", "offered")
    search_fields = ("name", "title", "repo")


@admin.register(Slot)
class SlotAdmin(ReadOnlyAdmin):
    list_display = ("name", "title", "kind", "number", "model_link", "model_since")
    list_select_related = ("model",)
    inlines = (PublicNameInline,)
    model_link = linked("model", _("model"))


@admin.register(Replica)
class ReplicaAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "slot_link", "server_link", "goal", "state", "model_link", why)
    list_filter = ("state", "goal", "slot", "server")
    list_select_related = ("slot", "server", "model")
    slot_link = linked("slot", pgettext_lazy("fleet", "slot"))
    server_link = linked("server", _("server"))
    model_link = linked("model", _("model"))


@admin.register(Swap)
class SwapAdmin(ReadOnlyAdmin):
    list_display = ("id", "slot_link", "from_link", "to_link", "state", "proposed_by", why)
    list_filter = ("state", "slot")
    list_select_related = ("slot", "from_model", "to_model", "proposed_by")
    date_hierarchy = "proposed_at"
    inlines = (SwapReplicaInline, FleetEventInline)
    slot_link = linked("slot", pgettext_lazy("fleet", "slot"))
    from_link = linked("from_model", _("from"))
    to_link = linked("to_model", _("to"))


@admin.register(PublicName)
class PublicNameAdmin(ReadOnlyAdmin):
    list_display = ("name", "slot_link", "model_link", "since", "retire_at", "retired_at")
    list_filter = ("slot", ("retired_at", admin.EmptyFieldListFilter))
    list_select_related = ("slot", "model")
    search_fields = ("name",)
    slot_link = linked("slot", pgettext_lazy("fleet", "slot"))
    model_link = linked("model", _("model"))


@admin.register(FleetEvent)
class FleetEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "what", "swap_link", "replica_link", "server_link", "detail", "actor")
    list_filter = ("what", "server")
    list_select_related = ("swap", "replica__server", "server", "actor")
    date_hierarchy = "at"
    swap_link = linked("swap", _("swap"))
    replica_link = linked("replica", _("replica"))
    server_link = linked("server", _("server"))


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    list_display = ("opened_at", "what", "server_link", "replica_link", "swap_link", "closed_at")
    list_filter = ("code", ("closed_at", admin.EmptyFieldListFilter))
    list_select_related = ("server", "replica__server", "swap")
    date_hierarchy = "opened_at"
    server_link = linked("server", _("server"))
    replica_link = linked("replica", _("replica"))
    swap_link = linked("swap", _("swap"))

    @admin.display(description=_("what"), ordering="code")
    def what(self, alert: Alert) -> str:
        return str(fleet_words(alert.code))


class IncidentUpdateInline(ReadOnlyInline):
    model = IncidentUpdate


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    list_display = ("slot", "began_at", "ended_at")
    list_filter = ("slot", ("ended_at", admin.EmptyFieldListFilter))
    list_select_related = ("slot",)
    date_hierarchy = "began_at"
    inlines = (IncidentUpdateInline,)


@admin.register(ProbeRun)
class ProbeRunAdmin(ReadOnlyAdmin):
    list_display = ("slot", "model", "cause", "state", "asked_at", "finished_at", "error_code")
    list_filter = ("state", "cause", "slot")
    list_select_related = ("slot", "model")


@admin.register(ProbeResult)
class ProbeResultAdmin(ReadOnlyAdmin):
    list_display = ("call", "model", "slot", "ok", "code", "detail", "seconds", "checked_at")
    list_filter = ("ok", "model", "call")
    list_select_related = ("slot", "model")
