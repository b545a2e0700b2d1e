"""Rows of the names under which members call models."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from inference.models.catalog import PUBLIC_NAME, CatalogModel, Slot


class PublicNameQuerySet(models.QuerySet["PublicName"]):
    def live(self) -> "PublicNameQuerySet":
        return self.filter(retired_at=None)

    def due_to_retire(self, now: datetime) -> "PublicNameQuerySet":
        return self.live().filter(retire_at__lte=now)


class PublicName(models.Model):
    """A name that the gateway answers to: a slot's own, for good, or a model's, until 14 days
    after the model has left. Every live name of a slot reaches whatever the slot serves.

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
    warned_at = models.DateTimeField(_("members told"), null=True)
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
