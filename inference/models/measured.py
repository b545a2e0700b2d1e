"""Rows of what engines have said of themselves."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from inference.models.catalog import CatalogModel
from inference.models.fleet import Server


class MeasurementQuerySet(models.QuerySet["Measurement"]):
    def of(self, found: Iterable[CatalogModel]) -> "dict[str, Measurement]":
        """By what each was measured with: see `measured_with`."""
        rows = self.filter(model__in=found).select_related("server")
        return {row.measured_with: row for row in rows}


class Measurement(models.Model):
    """What the last engine of its kind said about its KV cache once it served.

    One row for each model as it was told (weights, context, flags, environment) on each kind of
    place. It stands for the estimate (`inference.fit`), also after that engine has ended.
    """

    model = models.ForeignKey(CatalogModel, on_delete=models.CASCADE, related_name="measurements")
    measured_with = models.CharField(max_length=64, unique=True)
    kv_tokens = models.PositiveBigIntegerField(_("KV cache (tokens)"))
    concurrent = models.FloatField(_("requests of the full context at once"))
    gpus = models.JSONField(_("GPUs"), default=list)
    engine = models.CharField(_("engine"), max_length=60)
    server = models.ForeignKey(Server, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(_("measured"), default=timezone.now)

    objects = MeasurementQuerySet.as_manager()

    class Meta:
        verbose_name = _("measurement")
        verbose_name_plural = _("measurements")

    def __str__(self) -> str:
        return f"{self.model.name}: {self.kv_tokens} {self.at:%Y-%m-%d %H:%M}"

    @property
    def kinds(self) -> str:
        """`2 × NVIDIA RTX PRO 6000 (96 GiB)`; empty: no GPU."""
        counted = Counter((name, mib) for name, mib in self.gpus)
        return ", ".join(
            f"{f'{count} × ' if count > 1 else ''}{name} ({mib / 1024:.0f} GiB)"
            for (name, mib), count in sorted(counted.items())
        )


def measured_with(model: CatalogModel, server: Server, gpus: Sequence[int]) -> str:
    """The same for two engines that hold equally much: same weights, told the same, on GPUs of the
    same kind and size. Nothing says how much memory a host without GPUs has, so there it is the
    host itself. Empty where the server has not told of these GPUs."""
    found = server.kinds_of(gpus)
    if len(found) != len(gpus):
        return ""
    told: list[Any] = [
        model.pk, model.weights, model.context_length, model.gpus_needed,
        model.flags, model.environment, found or server.name,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
