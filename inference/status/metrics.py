"""What Prometheus may know of the fleet: states from rows, with ids that say nothing to outsiders.

A slot is called as in the pool (`slot01`), a replica by its row (`r12`). Every series is there in
every scrape, with 0 where there is nothing: one that comes and goes can't be alerted on.
"""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Max
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from inference.models import (
    Alert,
    FleetEvent,
    Goal,
    Heartbeat,
    Incident,
    Replica,
    ReplicaState,
    Server,
    Slot,
    Swap,
)
from inference.status.incidents import API

QUEUES = ("default", "fleet", "gateway")


def collect() -> Iterator[Metric]:
    now = timezone.now()
    replicas = list(Replica.objects.select_related("slot"))
    yield _states(replicas)
    down: set[int | None] = set(Incident.objects.open().values_list("slot_id", flat=True))
    yield from _slots(replicas, down)
    yield _servers(now)
    yield _stuck(now)
    yield _alerts()
    yield GaugeMetricFamily(
        "nan_api_incident",
        "1 while callers of the API are not answered.",
        value=API in down,
    )
    yield _heartbeats()


def _states(replicas: list[Replica]) -> Metric:
    family = GaugeMetricFamily(
        "nan_replica_state",
        "1 for the state in which a replica is, 0 for the others.",
        labels=["slot", "replica", "state"],
    )
    for one in replicas:
        for state in ReplicaState.values:
            labels = [one.slot.backend, f"r{one.pk}", state]
            family.add_metric(labels, one.state == state)
    return family


def _slots(replicas: list[Replica], down: set[int | None]) -> Iterator[Metric]:
    def family(name: str, text: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"nan_slot_{name}", text, labels=["slot"])

    wanted = family("replicas_wanted", "Replicas that are to serve.")
    serving = family("replicas_serving", "Replicas that serve.")
    rotating = family("rotating", "1 while a rotation is under way.")
    incident = family("incident", "1 while the slot is down, outside of a rotation.")
    for slot in Slot.objects.all():
        ours = [one for one in replicas if one.slot_id == slot.pk]
        name = [slot.backend]
        wanted.add_metric(name, sum(one.goal == Goal.SERVE for one in ours))
        serving.add_metric(name, sum(one.state == ReplicaState.SERVING for one in ours))
        rotating.add_metric(name, slot.rotating_since is not None)
        incident.add_metric(name, slot.pk in down)
    yield from (wanted, serving, rotating, incident)


def _servers(now: datetime) -> Metric:
    joined = Server.objects.filter(active=True, joined_at__isnull=False).defer("report", "gpus")
    return GaugeMetricFamily(
        "nan_servers_silent",
        "Servers in service that have not reported for more than 30 seconds.",
        value=sum(server.silent(now) for server in joined),
    )


def _stuck(now: datetime) -> Metric:
    """A paused one is meant to stand still."""
    active = Swap.objects.active().filter(paused_at=None)
    last = FleetEvent.objects.filter(swap__in=active).values("swap").annotate(at=Max("at"))
    longest = max(((now - row["at"]).total_seconds() for row in last.order_by()), default=0.0)
    return GaugeMetricFamily(
        "nan_swap_stuck_seconds",
        "How long the swap that has stood still the longest has not moved; 0 without one.",
        value=longest,
    )


def _alerts() -> Metric:
    return GaugeMetricFamily(
        "nan_alerts_open", "Open alerts.", value=Alert.objects.filter(closed_at=None).count()
    )


def _heartbeats() -> Metric:
    """0 for a queue on which nothing was ever done."""
    family = GaugeMetricFamily(
        "nan_beat_timestamp_seconds",
        "When work that the beat asks for was last done, by queue.",
        labels=["queue"],
    )
    found = {row.name: row.at.timestamp() for row in Heartbeat.objects.all()}
    for queue in QUEUES:
        family.add_metric([queue], found.get(queue, 0))
    return family
