"""Rows of swaps: a slot moves from one model to another, replica by replica."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.models.catalog import CatalogModel, Slot
from inference.models.fleet import AtDeadline, Replica, Server


class SwapState(models.TextChoices):
    """planned → approved → running → done
        │          │         └→ returning → failed | aborted
        └──────────┴→ cancelled

    *approved* waits for its time; *returning* puts the old model back.
    """

    PLANNED = "planned", pgettext_lazy("swap", "waiting for approval")
    APPROVED = "approved", pgettext_lazy("swap", "approved")
    RUNNING = "running", pgettext_lazy("swap", "running")
    RETURNING = "returning", pgettext_lazy("swap", "going back")
    DONE = "done", pgettext_lazy("swap", "done")
    FAILED = "failed", pgettext_lazy("swap", "failed")
    ABORTED = "aborted", pgettext_lazy("swap", "aborted")
    CANCELLED = "cancelled", pgettext_lazy("swap", "cancelled")


OPEN = (SwapState.PLANNED, SwapState.APPROVED, SwapState.RUNNING, SwapState.RETURNING)
ACTIVE = (SwapState.RUNNING, SwapState.RETURNING)


class SwapQuerySet(models.QuerySet["Swap"]):
    def open(self) -> "SwapQuerySet":
        return self.filter(state__in=OPEN)

    def active(self) -> "SwapQuerySet":
        return self.filter(state__in=ACTIVE)

    def due(self, now: datetime) -> "SwapQuerySet":
        return self.filter(state=SwapState.APPROVED, start_at__lte=now)


class Swap(models.Model):
    """One move. At most one is open for a slot; at most one is active on a server."""

    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="swaps")
    from_model = models.ForeignKey(
        CatalogModel, on_delete=models.PROTECT, related_name="+", verbose_name=_("from")
    )
    to_model = models.ForeignKey(
        CatalogModel, on_delete=models.PROTECT, related_name="+", verbose_name=_("to")
    )
    state = models.CharField(
        _("state"), max_length=10, choices=SwapState.choices, default=SwapState.PLANNED
    )
    reason = models.CharField(_("why"), max_length=200, blank=True)
    drain_seconds = models.PositiveIntegerField(
        _("longest time to drain (seconds)"),
        default=900,
        validators=[MaxValueValidator(3600)],
    )
    at_deadline = models.CharField(
        _("requests still running then"),
        max_length=5,
        choices=AtDeadline.choices,
        default=AtDeadline.ABORT,
    )
    watch_seconds = models.PositiveIntegerField(
        _("watch each replica before the next (seconds)"),
        default=120,
        validators=[MaxValueValidator(3600)],
    )
    start_at = models.DateTimeField(_("starts"), null=True, help_text=_("Empty: on approval."))
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    proposed_at = models.DateTimeField(_("planned"), default=timezone.now)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    approved_at = models.DateTimeField(_("approved"), null=True)
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    paused_at = models.DateTimeField(_("paused"), null=True)
    abort_asked = models.BooleanField(default=False, editable=False)
    retry_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    waiting_code = models.CharField(max_length=40, blank=True, editable=False)
    error_code = models.CharField(max_length=40, blank=True, editable=False)
    error_detail = models.CharField(max_length=400, blank=True, editable=False)
    error_step = models.CharField(max_length=20, blank=True, editable=False)

    objects = SwapQuerySet.as_manager()

    class Meta:
        verbose_name = _("swap")
        verbose_name_plural = _("swaps")
        ordering: ClassVar[list[str]] = ["-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["slot"], condition=Q(state__in=OPEN), name="one_open_swap_per_slot"
            )
        ]

    def __str__(self) -> str:
        return f"{self.slot_id}: {self.from_model_id} → {self.to_model_id}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


class SwapReplica(models.Model):
    """One replica's part in a swap, in the order of the plan."""

    class State(models.TextChoices):
        WAITING = "waiting", pgettext_lazy("swap", "waiting")
        CHANGING = "changing", pgettext_lazy("swap", "changing")
        WATCHED = "watched", pgettext_lazy("swap", "being watched")
        DONE = "done", pgettext_lazy("swap", "done")
        RETURNING = "returning", pgettext_lazy("swap", "going back")
        RESTORED = "restored", pgettext_lazy("swap", "restored")
        DOWN = "down", pgettext_lazy("swap", "down")
        KEPT = "kept", pgettext_lazy("swap", "left on the new model")

    swap = models.ForeignKey(Swap, on_delete=models.CASCADE, related_name="parts")
    replica = models.ForeignKey(Replica, on_delete=models.CASCADE, related_name="swap_parts")
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="+")
    position = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    state_since = models.DateTimeField(default=timezone.now)
    request = models.CharField(max_length=60, blank=True)
    asked_at = models.DateTimeField(null=True)
    preflight = models.JSONField(default=list)
    checks = models.JSONField(_("smoke test"), default=list)
    log = models.JSONField(_("last lines of the failed engine"), default=list)
    left_down = models.JSONField(_("why the old model did not come back"), default=dict)

    class Meta:
        ordering: ClassVar[list[str]] = ["position"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["swap", "replica"], name="one_part_per_replica"),
        ]

    def __str__(self) -> str:
        return f"{self.swap_id}/{self.position}"


class SwapClaim(models.Model):
    """A server is changed by one active swap at a time: the row exists while it is."""

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="claim")
    swap = models.ForeignKey(Swap, on_delete=models.CASCADE, related_name="claims")

    def __str__(self) -> str:
        return f"{self.server_id}: {self.swap_id}"


class FleetEvent(models.Model):
    """What happened to a replica, a swap or a server, and who wanted it. Never changed."""

    at = models.DateTimeField(_("when"), default=timezone.now)
    swap = models.ForeignKey(Swap, on_delete=models.CASCADE, null=True, related_name="events")
    replica = models.ForeignKey(
        Replica, on_delete=models.SET_NULL, null=True, related_name="events"
    )
    server = models.ForeignKey(Server, on_delete=models.SET_NULL, null=True, related_name="events")
    model = models.ForeignKey(CatalogModel, on_delete=models.SET_NULL, null=True, related_name="+")
    what = models.CharField(_("what"), max_length=40)
    detail = models.CharField(_("detail"), max_length=400, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("by"),
        help_text=_("Empty: the system."),
    )

    class Meta:
        verbose_name = _("fleet event")
        verbose_name_plural = _("fleet events")
        ordering: ClassVar[list[str]] = ["at", "pk"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["swap", "at"], name="event_swap_at"),
            models.Index(fields=["replica", "at"], name="event_replica_at"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.what}"
