"""Rows of what members used. Days are days in UTC, as the gateway counts them."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.models.keys import Key, KeyHolder


class Usage(models.Model):
    """What one key did on one day with one model; its figures only ever grow.

    A call belongs to the day on which it began. `holder` repeats the key's own, so that a member's
    figures are one stretch of an index. An empty model: calls refused before any model was found.
    """

    day = models.DateField(_("day (UTC)"))
    holder = models.ForeignKey(
        KeyHolder, on_delete=models.PROTECT, related_name="usage", verbose_name=_("holder")
    )
    key = models.ForeignKey(
        Key, on_delete=models.PROTECT, related_name="usage", verbose_name=_("key")
    )
    model = models.CharField(_("model"), max_length=200, blank=True)
    requests = models.PositiveBigIntegerField(_("answered requests"), default=0)
    prompt_tokens = models.PositiveBigIntegerField(_("input tokens"), default=0)
    completion_tokens = models.PositiveBigIntegerField(_("output tokens"), default=0)
    cached_tokens = models.PositiveBigIntegerField(
        _("input tokens from the cache"), default=0, help_text=_("Part of the input tokens.")
    )
    refused_rpm = models.PositiveBigIntegerField(_("refused: requests a minute"), default=0)
    refused_parallel = models.PositiveBigIntegerField(_("refused: in parallel"), default=0)
    failed = models.PositiveBigIntegerField(_("failed by our fault"), default=0)
    left_early = models.PositiveBigIntegerField(_("left before the first word"), default=0)

    class Meta:
        verbose_name = _("usage of a day")
        verbose_name_plural = _("usage by day")
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["holder", "day"], name="usage_of_a_holder")
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["day", "key", "model"], name="usage_counted_once")
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.key} {self.model}"


class UsageDayQuerySet(models.QuerySet["UsageDay"]):
    def due(self, now: datetime) -> "UsageDayQuerySet":
        """Days to be read from the gateway, the newest first."""
        return self.filter(closed=False, due_at__lte=now).order_by("-day")


class UsageDay(models.Model):
    """How far a day has been taken over from the gateway.

    `digests` holds, for each source, a digest of each part of what was last read: parts that say
    the same again are left alone. A closed day can't change any more and is never read again.
    """

    day = models.DateField(_("day (UTC)"), primary_key=True)
    digests = models.JSONField(default=dict, editable=False)
    read_at = models.DateTimeField(_("last read"), null=True)
    due_at = models.DateTimeField(_("next reading due"), default=timezone.now)
    closed = models.BooleanField(pgettext_lazy("day", "closed"), default=False)

    objects = UsageDayQuerySet.as_manager()

    class Meta:
        verbose_name = _("day of usage")
        verbose_name_plural = _("days of usage")
        ordering: ClassVar[list[str]] = ["-day"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["due_at"], condition=Q(closed=False), name="usage_day_due")
        ]

    def __str__(self) -> str:
        return f"{self.day}"


class UsageLook(models.Model):
    """An admin opened a member's figures, and why. The member sees it too. Never changed."""

    holder = models.ForeignKey(
        KeyHolder, on_delete=models.PROTECT, related_name="usage_looks", verbose_name=_("member")
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("by"),
    )
    reason = models.CharField(_("reason"), max_length=200)
    at = models.DateTimeField(_("when"), default=timezone.now)

    class Meta:
        verbose_name = _("look at a member's usage")
        verbose_name_plural = _("looks at members' usage")
        ordering: ClassVar[list[str]] = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.holder_id}"
