"""Rows of how it went: samples, what they were counted from, incidents, and who is alive."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.models.catalog import CatalogModel, Slot
from inference.models.fleet import Replica


class Span(models.TextChoices):
    """How much time a row stands for: raw ones half a minute, kept for two days; then hours."""

    RAW = "raw", _("half a minute")
    HOUR = "hour", _("an hour")


class ReplicaSample(models.Model):
    """What one engine did in `seconds` until `at`; an hour's row has `at` at its beginning."""

    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, related_name="+")
    replica = models.ForeignKey(Replica, on_delete=models.SET_NULL, null=True, related_name="+")
    model = models.ForeignKey(CatalogModel, on_delete=models.SET_NULL, null=True, related_name="+")
    span = models.CharField(max_length=4, choices=Span.choices, default=Span.RAW)
    at = models.DateTimeField()
    seconds = models.FloatField()
    running = models.FloatField(default=0)
    waiting = models.FloatField(default=0)
    kv_usage = models.FloatField(default=0, help_text="0 to 1")
    generated = models.FloatField(default=0, help_text="tokens")
    first_tokens = models.PositiveIntegerField(default=0, help_text="requests that got their first")
    first_token_seconds = models.FloatField(default=0, help_text="summed over them")
    first_token_buckets = models.JSONField(
        default=dict, help_text="upper bound in seconds: requests in that bucket alone"
    )
    drafted = models.FloatField(null=True)
    accepted = models.FloatField(null=True)

    class Meta:
        verbose_name = _("sample of a replica")
        verbose_name_plural = _("samples of replicas")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["slot", "span", "at", "replica"], name="one_sample_per_replica"
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["span", "at"], name="replica_samples_by_time")
        ]

    def __str__(self) -> str:
        return f"{self.replica_id} {self.span} {self.at:%Y-%m-%d %H:%M:%S}"


class SlotSample(models.Model):
    """How a slot stood in `seconds` until `at`, as the pool that sends it requests saw it.

    Of the time that was seen, `down_seconds` are those in which no engine was in service, and
    `rotation_seconds` those of them in which a rotation was under way. In `out_seconds` admins had
    all its engines out of service: nothing was wanted then, so it was neither up nor down.
    """

    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, related_name="+")
    span = models.CharField(max_length=4, choices=Span.choices, default=Span.RAW)
    at = models.DateTimeField()
    seconds = models.FloatField()
    up = models.FloatField(help_text="replicas in service")
    wanted = models.FloatField()
    queued = models.FloatField(default=0)
    errors = models.FloatField(default=0, help_text="answers with 5xx, by the pool")
    down_seconds = models.FloatField(default=0)
    rotation_seconds = models.FloatField(default=0)
    out_seconds = models.FloatField(default=0)

    class Meta:
        verbose_name = _("sample of a slot")
        verbose_name_plural = _("samples of slots")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["slot", "span", "at"], name="one_sample_per_slot")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["span", "at"], name="slot_samples_by_time")
        ]

    def __str__(self) -> str:
        return f"{self.slot_id} {self.span} {self.at:%Y-%m-%d %H:%M:%S}"


class ApiState(models.TextChoices):
    """What a caller of the API meets, whatever her key and whichever model."""

    UP = "up", pgettext_lazy("API", "answers")
    KEYS = "keys", pgettext_lazy("API", "keys can't be checked")
    GATEWAY = "gateway", pgettext_lazy("API", "the gateway is down")
    EDGE = "edge", pgettext_lazy("API", "can't be reached")


class ApiSample(models.Model):
    """How the API stood in `seconds` until `at`, asked like any caller; an hour's row has `at` at
    its beginning and the state of its last sample."""

    rotation_seconds = 0
    """As slots have it: a rotation concerns a model, never the way to all of them."""

    span = models.CharField(max_length=4, choices=Span.choices, default=Span.RAW)
    at = models.DateTimeField()
    seconds = models.FloatField()
    state = models.CharField(max_length=7, choices=ApiState.choices)
    down_seconds = models.FloatField(default=0)

    class Meta:
        verbose_name = _("sample of the API")
        verbose_name_plural = _("samples of the API")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["span", "at"], name="one_sample_of_the_api")
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.span} {self.at:%Y-%m-%d %H:%M:%S}"


class LastCount(models.Model):
    """Counters as they stood at the last sample; the next one counts from here.

    `source` names the process that counts: another one starts at zero.
    """

    subject = models.CharField(max_length=40, primary_key=True)
    source = models.CharField(max_length=80)
    at = models.DateTimeField()
    counts = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.subject} {self.at:%Y-%m-%d %H:%M:%S}"


class Heartbeat(models.Model):
    """When work that the beat asks for was last done, by queue."""

    name = models.CharField(max_length=20, primary_key=True)
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.name} {self.at:%Y-%m-%d %H:%M:%S}"


class IncidentQuerySet(models.QuerySet["Incident"]):
    def open(self) -> "IncidentQuerySet":
        return self.filter(ended_at=None)


class Incident(models.Model):
    """A slot answered nobody, outside of a rotation; without a slot, the API itself, and so none.
    Begins and ends by itself, from samples.

    `began_at` and `ended_at` are when it happened; the row is written a little later.
    """

    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, null=True, related_name="incidents")
    began_at = models.DateTimeField(_("began"))
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    objects = IncidentQuerySet.as_manager()

    class Meta:
        verbose_name = _("incident")
        verbose_name_plural = _("incidents")
        ordering: ClassVar[list[str]] = ["-began_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["slot"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
                name="one_open_incident_per_slot",
            )
        ]

    def __str__(self) -> str:
        return f"{self.about} {self.began_at:%Y-%m-%d %H:%M}"

    @property
    def about(self) -> str:
        """What is down, by its name."""
        return str(self.slot) if self.slot else "API"

    def seconds(self, now: datetime) -> float:
        return ((self.ended_at or now) - self.began_at).total_seconds()


class IncidentUpdate(models.Model):
    """What an admin tells everybody about an incident, in both languages. Never changed."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="updates")
    at = models.DateTimeField(_("when"), default=timezone.now)
    text_es = models.TextField(_("in Spanish"), max_length=1000)
    text_en = models.TextField(_("in English"), max_length=1000)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        verbose_name = _("update of an incident")
        verbose_name_plural = _("updates of incidents")
        ordering: ClassVar[list[str]] = ["at", "pk"]

    def __str__(self) -> str:
        return f"{self.incident_id} {self.at:%Y-%m-%d %H:%M}"
