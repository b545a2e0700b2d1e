"""What a fleet pass looks at: HAProxy once for all, and engines that somebody waits for."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Literal

import structlog
from django.conf import settings

from inference import heartbeats
from inference.engine import Engine, EngineUnavailable
from inference.fleet import alerts, signs
from inference.fleet.machine import Sight
from inference.models import Replica, ReplicaState
from inference.places import Place, PoolView, Seen, reconcile
from inference.pool import Pool, PoolUnavailable

log = structlog.get_logger(__name__)

WANTED: dict[str, Literal["ready", "drain", "out"]] = {
    ReplicaState.CHECKING: "drain",  # its health is proven meanwhile, no request reaches it
    ReplicaState.JOINING: "ready",
    ReplicaState.SERVING: "ready",
    ReplicaState.DRAINING: "drain",
}
LOOKS_AT_ONCE = 8
POOL_PATIENCE = timedelta(seconds=15)
"""One look that took too long is no outage: on a machine under load a second may pass."""


@cache
def pool() -> Pool:
    return Pool(settings.POOL_DIR)


def engine(replica: Replica) -> Engine:
    address = f"http://{replica.server.address}:{replica.port}"
    return Engine(address, settings.ENGINE_API_KEY)


def place(replica: Replica) -> Place:
    return Place(
        backend=replica.slot.backend,
        number=replica.number,
        address=replica.server.address,
        port=replica.port,
        want=WANTED.get(replica.state, "out"),
    )


def look_at_pool(replicas: Sequence[Replica], now: datetime) -> PoolView | None:
    """Brings the pool to what the rows say and reads it back; None while it can't be reached."""
    placed = [replica for replica in replicas if replica.server.address]
    try:
        view = reconcile(pool(), [place(replica) for replica in placed])
        signs.put_up(pool(), replicas)
    except PoolUnavailable as error:
        since = heartbeats.missed_since(heartbeats.POOL, now)
        if now - since > POOL_PATIENCE:
            alerts.open_alert("pool_unreachable", detail=error.code, at=since)
        return None
    heartbeats.seen(heartbeats.POOL, now)
    alerts.close_alert("pool_unreachable")
    return view


def look(
    replicas: Sequence[Replica], *, now: datetime, check: Callable[[Replica], None]
) -> dict[int, Sight]:
    """For each replica what this round may decide on. Network only, no rows, in the threads."""
    view = look_at_pool(replicas, now)
    asked = [replica for replica in replicas if replica.state in LOOKS]
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as threads:
        answers = dict(
            zip((replica.pk for replica in asked), threads.map(_ask, asked), strict=True)
        )
    return {
        replica.pk: Sight(
            now=now,
            seen=_seen(view, replica),
            healthy=bool(answers.get(replica.pk)) if replica.state == STARTING else None,
            running=answers.get(replica.pk) if replica.state == DRAINING else None,
            check=check,
            cut=_cut,
        )
        for replica in replicas
    }


STARTING, DRAINING = ReplicaState.STARTING, ReplicaState.DRAINING
LOOKS = (STARTING, DRAINING)


def _seen(view: PoolView | None, replica: Replica) -> Seen | None:
    return view.places.get((replica.slot.backend, replica.number)) if view else None


def _ask(replica: Replica) -> int | None:
    """A starting engine: 1 when it is healthy, else 0. A draining one: requests it still has."""
    if replica.state == STARTING and not replica.report:
        return 0  # not started yet: whatever answers at this port is somebody else
    with engine(replica) as client:
        if replica.state == STARTING:
            return int(client.healthy())
        with suppress(EngineUnavailable):
            metrics = client.metrics()
            return metrics.running + metrics.waiting
    return None


def _cut(replica: Replica) -> None:
    """If the pool can't be reached now, stopping the engine ends them."""
    with suppress(PoolUnavailable):
        pool().cut(replica.slot.backend, replica.number)
