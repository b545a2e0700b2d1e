"""Rows of probes: calls made like a member's, that examples depend on."""

from datetime import datetime, timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.models.catalog import CatalogModel, Slot
from inference.models.keys import Key
from inference.models.swaps import Swap

RUN_TIME = timedelta(seconds=settings.REVEAL_SECONDS - 60)
"""After which a run is given up: its key can be opened for REVEAL_SECONDS only."""


class ProbeRunState(models.TextChoices):
    """asked → running → done | failed (not a probe: the run itself could not be made)"""

    ASKED = "asked", pgettext_lazy("probes", "waiting")
    RUNNING = "running", pgettext_lazy("probes", "running")
    DONE = "done", pgettext_lazy("probes", "done")
    FAILED = "failed", pgettext_lazy("probes", "could not be made")


class ProbeRunQuerySet(models.QuerySet["ProbeRun"]):
    def open(self) -> "ProbeRunQuerySet":
        return self.filter(state__in=ProbeRun.OPEN)

    def free(self, now: datetime) -> "ProbeRunQuerySet":
        """Open, and no worker is at it; a lease that ran out belongs to one that died."""
        return self.open().filter(Q(lease_until=None) | Q(lease_until__lte=now))


class ProbeRun(models.Model):
    """All calls of one slot with the model it had then. One run at a time, of all slots: the
    probes share one key. `left` are the calls that are still to be made."""

    OPEN: ClassVar[tuple[str, ...]] = (ProbeRunState.ASKED, ProbeRunState.RUNNING)

    class Cause(models.TextChoices):
        FIRST = "first", pgettext_lazy("probes", "first")
        SWAP = "swap", pgettext_lazy("probes", "after a swap")
        NIGHT = "night", pgettext_lazy("probes", "nightly")
        ASKED = "asked", pgettext_lazy("probes", "asked for")

    slot = models.ForeignKey(Slot, models.CASCADE, related_name="probe_runs")
    model = models.ForeignKey(CatalogModel, models.CASCADE, related_name="+")
    cause = models.CharField(_("why"), max_length=6, choices=Cause.choices)
    swap = models.ForeignKey(Swap, models.SET_NULL, null=True, related_name="+")
    state = models.CharField(
        _("state"), max_length=8, choices=ProbeRunState.choices, default=ProbeRunState.ASKED
    )
    left = models.JSONField(default=list, editable=False)
    key = models.ForeignKey(Key, models.SET_NULL, null=True, related_name="+", editable=False)
    error_code = models.CharField(max_length=40, blank=True, editable=False)
    asked_at = models.DateTimeField(_("asked"), default=timezone.now)
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    lease_until = models.DateTimeField(null=True, editable=False)

    objects = ProbeRunQuerySet.as_manager()

    class Meta:
        verbose_name = _("run of probes")
        verbose_name_plural = _("runs of probes")
        ordering: ClassVar[list[str]] = ["-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["slot"],
                condition=Q(state__in=("asked", "running")),
                name="one_open_probe_run_per_slot",
            ),
            models.UniqueConstraint(
                fields=["state"],
                condition=Q(state="running"),
                name="one_probe_run_at_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slot_id} {self.cause} {self.asked_at:%Y-%m-%d %H:%M}"

    def is_late(self, now: datetime) -> bool:
        return self.started_at is not None and self.started_at < now - RUN_TIME


class ProbeResult(models.Model):
    """What a call did with a model the last time. `detail`: figures and names of fields only."""

    model = models.ForeignKey(CatalogModel, models.CASCADE, related_name="probe_results")
    slot = models.ForeignKey(Slot, models.CASCADE, related_name="probe_results")
    call = models.CharField(_("call"), max_length=20)
    ok = models.BooleanField(_("works"))
    code = models.CharField(max_length=40, blank=True)
    detail = models.CharField(max_length=200, blank=True)
    seconds = models.FloatField(default=0)
    checked_at = models.DateTimeField(_("checked"), default=timezone.now)
    run = models.ForeignKey(ProbeRun, models.SET_NULL, null=True, related_name="results")

    class Meta:
        verbose_name = _("result of a probe")
        verbose_name_plural = _("results of probes")
        ordering: ClassVar[list[str]] = ["pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["slot", "model", "call"], name="one_result_per_model_and_call"
            )
        ]

    def __str__(self) -> str:
        return f"{self.model_id} {self.call} {'ok' if self.ok else self.code}"
