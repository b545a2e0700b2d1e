"""One fleet pass: look at everything once, move each swap and then each replica one step.

Nothing is remembered between rounds but rows. Rounds follow each other quickly while something
moves; the pass ends before a Celery task may not run longer, and the next takes over.
"""

import math
import time
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import structlog
from django.utils import timezone

from inference import wake, watch
from inference.fleet import alerts, lease, sight, tell, watching
from inference.fleet.change import ReplicaChanged
from inference.fleet.machine import Sight, advance
from inference.models import Replica, ReplicaState, Swap
from inference.swaps import run as swaps
from inference.swaps.returning import begin_return

log = structlog.get_logger(__name__)

PASS_SECONDS = 12
ROUND_SECONDS = 0.25
"""Between two rounds while something moves."""
NEWS_SECONDS = 0.5
"""Between two reports that servers are asked for: each has to look at its GPUs for it."""
NEXT_STEP_SECONDS = 0.05
"""After a round in which a replica took a step: what its next one needs may be there already."""
AWAITED = (ReplicaState.STARTING, ReplicaState.STOPPING)


def run_pass(*, seconds: float = PASS_SECONDS) -> bool:
    """True when something still moves, so that another pass should follow at once."""
    mark = lease.take()
    if mark is None:
        return False
    try:
        return _rounds(mark, seconds=seconds)
    finally:
        lease.give_back(mark)


def _rounds(mark: UUID, *, seconds: float) -> bool:
    until, asked = time.monotonic() + seconds, -math.inf
    while True:
        began = time.monotonic()
        ask = began - asked >= NEWS_SECONDS
        pause = one_round(timezone.now(), ask=ask)
        asked = began if ask else asked
        if pause is None or time.monotonic() > until:
            return pause is not None
        time.sleep(pause)
        if not lease.renew(mark):
            return False


def one_round(now: datetime, *, ask: bool = True) -> float | None:
    """Seconds until the next round is due; None while nothing waits for one. `ask` servers for news
    of what is on its way.

    Swaps first: a replica to which one gives a new goal begins in the same round, and no page has
    it serve meanwhile, as if nothing were happening.
    """
    swaps.start_due(now)
    active = list(Swap.objects.active().select_related("slot", "from_model", "to_model"))
    for swap in active:
        _advance_swap(swap, now)
    replicas = list(Replica.objects.whole())
    before = [replica.state for replica in replicas]
    sights = sight.look(replicas, now=now, check=_check)
    for replica in replicas:
        _advance(replica, sights[replica.pk])
        _watch(replica, now)
    if ask:
        _ask_for_news(replicas)
    if [replica.state for replica in replicas] != before:
        return NEXT_STEP_SECONDS
    moving = any(not replica.at_rest and _moves(replica) for replica in replicas)
    if moving or (active and Swap.objects.active().filter(paused_at=None).exists()):
        return ROUND_SECONDS
    return None


def _ask_for_news(replicas: Sequence[Replica]) -> None:
    """Of servers on which an engine is coming or going: their own reports are seconds apart."""
    waiting = {r.server_id: r.server for r in replicas if r.state in AWAITED}
    for server in waiting.values():
        tell.report(server)


def _moves(replica: Replica) -> bool:
    """A failed one that waits for its next try is looked at by the beat, often enough."""
    return replica.state != ReplicaState.FAILED


def _advance(replica: Replica, found: Sight) -> None:
    before = replica.state
    try:
        advance(replica, found)
    except ReplicaChanged:
        return
    except Exception:
        # One replica's trouble must not stop the others; it shows as an alert, not in silence.
        log.exception("replica_not_advanced", replica=replica.pk)
        alerts.open_alert("internal", replica=replica)
        return
    if replica.state == before:
        return
    if replica.state in (ReplicaState.SERVING, ReplicaState.OFF):
        alerts.close_all(replica)
    elif replica.state == ReplicaState.FAILED and not watch.condemned(replica.error_code):
        alerts.open_alert("replica_down", replica=replica, detail=replica.error_code)


def _advance_swap(swap: Swap, now: datetime) -> None:
    """A fault of ours ends the swap that met it, by the way back; other swaps go on."""
    try:
        swaps.advance(swap, now)
    except Exception:
        log.exception("swap_not_advanced", swap=swap.pk)
        alerts.open_alert("internal", swap=swap)
        begin_return(swap, code="internal", detail="", step="")


def _check(replica: Replica) -> None:
    wake.check(replica.pk, replica.instance)


def _watch(replica: Replica, now: datetime) -> None:
    if replica.state == ReplicaState.SERVING and watching.due(replica, now):
        watching.mark_asked(replica, now)
        wake.watch(replica.pk, replica.instance)
