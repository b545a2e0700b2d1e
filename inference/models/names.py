"""Rows of the names under which members call models."""

from datetime import datetime, timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from inference.models.catalog import PUBLIC_NAME, CatalogModel, Slot
from inference.models.swaps import Swap

WARNED_BEFORE = timedelta(days=3)
"""How long before a name's last day its members are written to again…"""
APART = timedelta(days=1)
"""…unless they were told of the day less than this ago."""


class PublicNameQuerySet(models.QuerySet["PublicName"]):
    def live(self) -> "PublicNameQuerySet":
        return self.filter(retired_at=None)

    def leaving(self) -> "PublicNameQuerySet":
        """With a last day, and no swap under way that brings their model back."""
        returning = Swap.objects.active().filter(
            slot=OuterRef("slot_id"), to_model=OuterRef("model_id")
        )
        return self.live().filter(~Exists(returning), retire_at__isnull=False)

    def to_be_told(self) -> "PublicNameQuerySet":
        return self.leaving().filter(told_at=None)

    def to_be_warned(self, now: datetime) -> "PublicNameQuerySet":
        return self.leaving().filter(
            warned_at=None, retire_at__lte=now + WARNED_BEFORE, told_at__lte=now - APART
        )

    def due_to_retire(self, now: datetime) -> "PublicNameQuerySet":
        """Never before the members were told."""
        return self.leaving().filter(retire_at__lte=now, told_at__isnull=False)


class PublicName(models.Model):
    """A name that the gateway answers to: a slot's own, for good, or a model's, until some days
    (RETIRED_NAME_DAYS) after the model has left. Every live name of a slot reaches whatever the
    slot serves.

    `confirmed` says what the gateway was last known to have (a digest; empty: nothing).
    """

    name = models.CharField(_("name"), max_length=40, unique=True, validators=[PUBLIC_NAME])
    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="public_names")
    model = models.ForeignKey(
        CatalogModel,
        on_delete=models.PROTECT,
        null=True,
        related_name="public_names",
        help_text=_("Empty: the slot's own name."),
    )
    since = models.DateTimeField(_("since"), default=timezone.now)
    retire_at = models.DateTimeField(_("to be retired"), null=True)
    told_at = models.DateTimeField(_("members told"), null=True)
    warned_at = models.DateTimeField(_("members warned"), null=True)
    retired_at = models.DateTimeField(_("retired"), null=True)
    confirmed = models.CharField(max_length=64, blank=True, editable=False)
    error_code = models.CharField(max_length=40, blank=True, editable=False)

    objects = PublicNameQuerySet.as_manager()

    class Meta:
        verbose_name = _("public name")
        verbose_name_plural = _("public names")
        ordering: ClassVar[list[str]] = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_settled(self) -> bool:
        """Answers, with no last day."""
        return self.retired_at is None and self.retire_at is None
