"""What Prometheus may know of keys and names: counts from rows, no person and no key in a label."""

from collections.abc import Iterator

from django.db.models import Count, Q
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from inference.models import Key, KeyHolder, KeyState, PublicName, Reconciliation


def collect() -> Iterator[Metric]:
    yield _keys()
    yield from _waiting()
    yield from _drift()
    yield from _names()


def _keys() -> Metric:
    counted: dict[str, int] = dict(
        Key.objects.live().order_by().values_list("state").annotate(n=Count("pk"))
    )
    family = GaugeMetricFamily("nan_keys", "Keys by state, without deleted ones.", labels=["state"])
    for state in KeyState.values:
        if state != KeyState.DELETED:
            family.add_metric([state], counted.get(state, 0))
    return family


def _waiting() -> Iterator[Metric]:
    """Members whose keys the gateway has yet to confirm, and for how long it failed the oldest."""
    now = timezone.now()
    failing = KeyHolder.objects.filter(attempts__gt=0)
    yield GaugeMetricFamily(
        "nan_key_holders_due",
        "Members with a step at the gateway that is due.",
        value=KeyHolder.objects.filter(due_at__lte=now).count(),
    )
    yield GaugeMetricFamily(
        "nan_key_holders_failing",
        "Members whose last step at the gateway failed and will be tried again.",
        value=failing.count(),
    )


def _drift() -> Iterator[Metric]:
    """Also before the first comparison, with 0 as its time: what is never there never alerts."""
    last = Reconciliation.objects.first()
    family = GaugeMetricFamily(
        "nan_key_drift",
        "Keys that differed between our rows and the gateway at the last comparison.",
        labels=["kind"],
    )
    for kind in ("orphans", "spared", "missing", "differing"):
        family.add_metric([kind], getattr(last, kind, 0))
    yield family
    yield GaugeMetricFamily(
        "nan_key_reconciled_timestamp_seconds",
        "When our rows and the gateway were last compared; 0 if never.",
        value=last.at.timestamp() if last else 0,
    )


def _names() -> Iterator[Metric]:
    """Beyond a minute, any drift is a fault: the gateway is told of a change within 15 seconds."""
    live, unknown = Q(retired_at=None), Q(confirmed="")
    counted = PublicName.objects.aggregate(
        live=Count("pk", filter=live & Q(retire_at=None)),
        leaving=Count("pk", filter=live & Q(retire_at__isnull=False)),
        retired=Count("pk", filter=~live),
        missing=Count("pk", filter=live & unknown & Q(slot__model__isnull=False)),
        lingering=Count("pk", filter=~live & ~unknown),
        failing=Count("pk", filter=~Q(error_code="")),
    )
    names = GaugeMetricFamily("nan_names", "Names of models by state.", labels=["state"])
    drift = GaugeMetricFamily(
        "nan_name_drift",
        "Names that the gateway lacks, still has, or could not be told of.",
        labels=["kind"],
    )
    for state in ("live", "leaving", "retired"):
        names.add_metric([state], counted[state])
    for kind in ("missing", "lingering", "failing"):
        drift.add_metric([kind], counted[kind])
    yield names
    yield drift
