"""Rows of what runs: GPU servers, the engines on them, and the right to change them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.models.catalog import CatalogModel, Kind, Slot

GONE = timedelta(minutes=10)
SILENT = timedelta(seconds=30)
"""A server that has not reported for so long is called silent; it reports every five seconds."""
PLACES = 32


class Server(models.Model):
    """A GPU server, and how many members it carries with every replica that has been put in
    service on it: the seats that the waitlist fills.

    What stands below *reported* is what its worker last said; only `inference.fleet.reports`
    writes it.
    """

    name = models.SlugField(_("name"), max_length=40, unique=True)
    seats = models.PositiveIntegerField(_("seats"), default=0)
    active = models.BooleanField(_("in service"), default=True)
    added_at = models.DateTimeField(_("added"), default=timezone.now)
    join_digest = models.CharField(max_length=64, blank=True, editable=False)
    join_until = models.DateTimeField(null=True, editable=False)
    joined_at = models.DateTimeField(_("joined"), null=True, editable=False)
    # Reported:
    address = models.CharField(_("address"), max_length=64, blank=True, editable=False)
    driver = models.CharField(_("driver"), max_length=10, blank=True, editable=False)
    engine = models.CharField(_("engine"), max_length=60, blank=True, editable=False)
    gpus = models.JSONField(_("GPUs"), default=list, editable=False)
    report = models.JSONField(default=dict, editable=False)
    report_serial = models.BigIntegerField(default=0, editable=False)
    reported_at = models.DateTimeField(_("last word"), null=True, editable=False)

    class Meta:
        verbose_name = _("server")
        verbose_name_plural = _("servers")
        ordering: ClassVar[list[str]] = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def queue(self) -> str:
        return f"gpu.{self.name}"

    @property
    def seats_in_service(self) -> int:
        """Its seats' share of the chat replicas that are not taken out. One that is down is to
        serve again, and one that was never put in has added nothing yet: neither changes it. A
        server added by hand, for a fleet that is not run from here, has all of its seats."""
        chat = [r for r in self.replicas.all() if r.goal_number and r.slot.kind == Kind.CHAT]
        kept = sum(replica.goal == Goal.SERVE for replica in chat)
        if not self.active:
            return 0
        if not chat:
            return 0 if self.join_until or self.joined_at or self.reported_at else self.seats
        return self.seats * kept // len(chat)

    def silent(self, now: datetime) -> bool:
        return self.reported_at is None or now - self.reported_at > SILENT

    def gone(self, now: datetime) -> bool:
        """Silent for so long that it may never be back."""
        return self.reported_at is None or now - self.reported_at > GONE

    def engine_report(self, instance: str) -> dict[str, Any] | None:
        """What the server said about one engine; None while it has not mentioned it."""
        return self.report.get("engines", {}).get(instance) if instance else None

    @property
    def weights(self) -> list[str]:
        """What it has whole, by its last report, as `CatalogModel.weights` names them."""
        return list(self.report.get("weights", []))

    def kinds_of(self, gpus: Sequence[int]) -> list[tuple[str, int]]:
        """Name and memory (MiB) of these GPUs, of those that the server has told of."""
        found = [gpu for gpu in self.gpus if gpu["index"] in gpus]
        return sorted((str(gpu.get("name", "")), int(gpu["total_mib"])) for gpu in found)

    def free_mib(self, gpu: int) -> int | None:
        """Memory free on one GPU by the last report; None if there is no such GPU."""
        for found in self.gpus:
            if found["index"] == gpu:
                return int(found["total_mib"] - found["used_mib"])
        return None


class Goal(models.TextChoices):
    SERVE = "serve", _("serve")
    OFF = "off", pgettext_lazy("replica", "off")


class ReplicaState(models.TextChoices):
    """What is being done with a replica.

    off → starting → checking → joining → serving → draining → stopping → off | starting | failed
            └───────────┴──────────┴─ stopping → failed → starting
    Any state with an engine goes to *stopping* when the goal changes, except from *draining*,
    which goes back to *joining* when its own model is wanted again.
    """

    OFF = "off", pgettext_lazy("replica", "off")
    STARTING = "starting", pgettext_lazy("replica", "starting")
    CHECKING = "checking", pgettext_lazy("replica", "being checked")
    JOINING = "joining", pgettext_lazy("replica", "joining the pool")
    SERVING = "serving", pgettext_lazy("replica", "serving")
    DRAINING = "draining", pgettext_lazy("replica", "draining")
    STOPPING = "stopping", pgettext_lazy("replica", "stopping")
    FAILED = "failed", pgettext_lazy("replica", "down")


REPLICA_TRANSITIONS: Mapping[str, frozenset[str]] = {
    ReplicaState.OFF: frozenset({ReplicaState.STARTING}),
    ReplicaState.STARTING: frozenset({ReplicaState.CHECKING, ReplicaState.STOPPING}),
    ReplicaState.CHECKING: frozenset({ReplicaState.JOINING, ReplicaState.STOPPING}),
    ReplicaState.JOINING: frozenset({
        ReplicaState.SERVING, ReplicaState.DRAINING, ReplicaState.STOPPING,
    }),
    ReplicaState.SERVING: frozenset({ReplicaState.DRAINING, ReplicaState.STOPPING}),
    ReplicaState.DRAINING: frozenset({ReplicaState.JOINING, ReplicaState.STOPPING}),
    ReplicaState.STOPPING: frozenset({
        ReplicaState.OFF, ReplicaState.STARTING, ReplicaState.FAILED,
    }),
    ReplicaState.FAILED: frozenset({ReplicaState.STARTING, ReplicaState.OFF}),
}  # fmt: skip


BEGINNING = (
    ReplicaState.STOPPING, ReplicaState.STARTING, ReplicaState.CHECKING, ReplicaState.JOINING,
)  # fmt: skip
LOAD_MARGIN = timedelta(seconds=60)
"""For the ends of what ran before, and for messages."""


class AtDeadline(models.TextChoices):
    """What happens to requests that still run when the time to drain is over."""

    ABORT = "abort", _("stop the swap, let them finish")
    CUT = "cut", _("cut them off")


class ReplicaQuerySet(models.QuerySet["Replica"]):
    def whole(self) -> "ReplicaQuerySet":
        return self.select_related("slot", "server", "model", "goal_model", "swap")

    def serving(self) -> "ReplicaQuerySet":
        return self.filter(state=ReplicaState.SERVING)

    def staying(self) -> "ReplicaQuerySet":
        """Those that serve and are to go on."""
        return self.serving().filter(goal=Goal.SERVE)


class Replica(models.Model):
    """One engine's place: a slot, on a server's GPUs and port, with a number in the pool.

    `goal` and `goal_model` are what is wanted (people and swaps write them), `state`, `model` and
    `instance` what is (only the fleet pass writes them, by conditional UPDATE on `version`).
    """

    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="replicas")
    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="replicas")
    gpus = models.JSONField(_("GPUs"), default=list, blank=True)
    port = models.PositiveIntegerField(
        _("port"), validators=[MinValueValidator(1024), MaxValueValidator(65535)]
    )
    number = models.PositiveSmallIntegerField(
        _("place in the pool"),
        validators=[MinValueValidator(1), MaxValueValidator(PLACES)],
        help_text=_("It keeps this number: requests that stick to a replica go by it."),
    )
    goal = models.CharField(_("goal"), max_length=5, choices=Goal.choices, default=Goal.OFF)
    goal_model = models.ForeignKey(
        CatalogModel, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    goal_number = models.PositiveIntegerField(default=0, editable=False)
    out_with_server = models.BooleanField(
        default=False, editable=False, help_text=_("It comes back when its server does.")
    )
    drain_seconds = models.PositiveIntegerField(default=900, editable=False)
    at_deadline = models.CharField(
        max_length=5, choices=AtDeadline.choices, default=AtDeadline.CUT, editable=False
    )
    swap = models.ForeignKey(
        "inference.Swap", on_delete=models.SET_NULL, null=True, editable=False, related_name="+"
    )
    state = models.CharField(
        _("state"), max_length=10, choices=ReplicaState.choices, default=ReplicaState.OFF
    )
    state_since = models.DateTimeField(_("since"), default=timezone.now)
    version = models.PositiveBigIntegerField(default=0, editable=False)
    model = models.ForeignKey(
        CatalogModel, on_delete=models.PROTECT, null=True, editable=False, related_name="replicas"
    )
    instance = models.CharField(_("engine"), max_length=60, blank=True, editable=False)
    names = models.JSONField(_("names that it answers to"), default=list, editable=False)
    told_at = models.DateTimeField(null=True, editable=False)
    error_code = models.CharField(_("error"), max_length=40, blank=True, editable=False)
    error_detail = models.CharField(max_length=400, blank=True, editable=False)
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    retry_at = models.DateTimeField(null=True, editable=False)
    in_flight = models.PositiveIntegerField(_("requests running"), default=0, editable=False)
    idle_looks = models.PositiveSmallIntegerField(default=0, editable=False)
    checks = models.JSONField(_("smoke test"), default=list, editable=False)
    check_until = models.DateTimeField(null=True, editable=False)
    last_log = models.JSONField(
        _("last lines of a failed engine"), default=list, blank=True, editable=False
    )
    watch = models.JSONField(default=dict, editable=False)

    objects = ReplicaQuerySet.as_manager()

    class Meta:
        verbose_name = _("replica")
        verbose_name_plural = _("replicas")
        ordering: ClassVar[list[str]] = ["slot__number", "number"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["slot", "number"], name="one_replica_per_place"),
            models.UniqueConstraint(fields=["server", "port"], name="one_replica_per_port"),
            models.CheckConstraint(
                condition=Q(goal="off") | Q(goal_model__isnull=False),
                name="serving_needs_a_model",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server.name}:{self.port}"

    @property
    def removable(self) -> bool:
        """Off for good; or out of the pool, and its server is not there to end its engine."""
        at_rest = self.state in (ReplicaState.OFF, ReplicaState.FAILED)
        left_over = self.state == ReplicaState.STOPPING and self.server.gone(timezone.now())
        return self.goal == Goal.OFF and (at_rest or left_over)

    @property
    def wanted(self) -> CatalogModel | None:
        return self.goal_model if self.goal == Goal.SERVE else None

    @property
    def at_rest(self) -> bool:
        """Nothing to do until somebody changes the goal or the engine fails."""
        if self.state == ReplicaState.SERVING:
            return self.goal == Goal.SERVE and self.goal_model_id == self.model_id
        return self.goal == Goal.OFF and self.state in (ReplicaState.OFF, ReplicaState.FAILED)

    def begins(self, now: datetime) -> bool:
        """On its way into service because somebody wanted it or everything was started, not
        because it had failed; and not for longer than its model may take."""
        if self.wanted is None or self.state not in BEGINNING or self.attempts or self.error_code:
            return False
        return now - self.state_since <= timedelta(seconds=self.wanted.load_seconds) + LOAD_MARGIN

    @property
    def report(self) -> dict[str, Any]:
        """What its server last said about its engine; empty if nothing."""
        return self.server.engine_report(self.instance) or {}


class FleetLease(models.Model):
    """One row: which fleet pass may change replicas and swaps now."""

    holder = models.UUIDField(null=True)
    until = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("fleet lease")
        verbose_name_plural = _("fleet leases")

    def __str__(self) -> str:
        return f"{self.holder} {self.until:%H:%M:%S}"


class Alert(models.Model):
    """Something that a person has to look at. Open until the cause is gone; mailed once.

    `hooked` is the last state that the webhook was told, or tried for the last time; a claim on
    one that is being told runs out by itself.
    """

    class Hooked(models.TextChoices):
        NOTHING = "", _("nothing")
        OPEN = "open", _("open")
        CLOSED = "closed", _("closed")

    code = models.CharField(_("what"), max_length=40)
    server = models.ForeignKey(Server, on_delete=models.CASCADE, null=True, related_name="alerts")
    replica = models.ForeignKey(Replica, on_delete=models.CASCADE, null=True, related_name="alerts")
    swap = models.ForeignKey(
        "inference.Swap", on_delete=models.CASCADE, null=True, related_name="alerts"
    )
    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, null=True, related_name="alerts")
    detail = models.CharField(_("detail"), max_length=400, blank=True)
    opened_at = models.DateTimeField(_("since"), default=timezone.now)
    closed_at = models.DateTimeField(_("until"), null=True)
    mailed_at = models.DateTimeField(_("mailed"), null=True)
    hooked = models.CharField(
        max_length=6, choices=Hooked.choices, default=Hooked.NOTHING, blank=True, editable=False
    )
    hook_attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    hook_due_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        ordering: ClassVar[list[str]] = ["-opened_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["code", "server", "replica", "swap", "slot"],
                condition=Q(closed_at=None),
                nulls_distinct=False,
                name="one_open_alert",
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.opened_at:%Y-%m-%d %H:%M}"
