"""What a swap does after approval, one step a round: check everything, then replica by replica.

A replica's own way (drain, stop, start, smoke test, join) is `inference.fleet.machine`; a swap
only sets goals and reads states, and a return sets the old goals again.
"""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from inference.fleet import alerts, watching
from inference.models import (
    ReplicaState,
    Slot,
    Swap,
    SwapClaim,
    SwapReplica,
    SwapState,
)
from inference.names import life
from inference.swaps import parts, preflight
from inference.swaps.returning import begin_return, go_back

State = SwapReplica.State
DOUBT_SECONDS = 180
"""How much longer a replica is watched, at most, while its last sample was odd: a verdict on time
to first token takes that long."""


def start_due(now: datetime) -> None:
    """Those whose time has come, unless another swap is changing one of their servers."""
    for swap in Swap.objects.due(now).order_by("start_at"):
        try:
            with transaction.atomic():
                _begin(swap, now)
        except IntegrityError:
            parts.wait(swap, "server_busy")


def _begin(swap: Swap, now: datetime) -> None:
    """IntegrityError: a server is taken."""
    approved = Swap.objects.filter(pk=swap.pk, state=SwapState.APPROVED)
    if not approved.update(state=SwapState.RUNNING, started_at=now, waiting_code=""):
        return  # cancelled a moment ago
    servers = set(swap.parts.values_list("server_id", flat=True))
    SwapClaim.objects.bulk_create(SwapClaim(server_id=pk, swap=swap) for pk in sorted(servers))
    Slot.objects.filter(pk=swap.slot_id).update(rotating_since=now)
    parts.note(swap, "started")
    if parts.outdated(swap):
        _fail_untouched(swap, None, "plan_outdated", "")


def advance(swap: Swap, now: datetime) -> None:
    """One step of an active swap, and the next one where it waits for nothing. Re-entrant:
    everything is read from rows and reports anew."""
    found = parts.of(swap)
    if swap.state == SwapState.RETURNING:
        if go_back(swap, found):
            _end(swap)
    elif swap.abort_asked:
        begin_return(swap, code="", detail="", step="")
    elif all(parts.passed(part) for part in found) or _preflight(swap, found, now):
        _next_replica(swap, found, now)


def _preflight(swap: Swap, found: list[SwapReplica], now: datetime) -> bool:
    """Of all replicas before anything is touched; on each server one after the other, since engines
    serve beside them. A failure ends the swap with nothing changed. True when all have passed."""
    waiting, busy = "", set[int]()
    for part in found:
        if not part.preflight and part.server_id not in busy:
            waiting = preflight.look(swap, part, now) or waiting
            if not part.preflight:
                busy.add(part.server_id)
        bad = next((check for check in part.preflight if not check["ok"]), None)
        if bad:
            _fail_untouched(swap, part, bad["code"], bad["detail"])
            return False
    parts.wait(swap, waiting)
    return all(parts.passed(part) for part in found)


def _fail_untouched(swap: Swap, part: SwapReplica | None, code: str, detail: str) -> None:
    with transaction.atomic():
        running = Swap.objects.filter(pk=swap.pk, state=SwapState.RUNNING)
        running.update(
            state=SwapState.FAILED,
            finished_at=timezone.now(),
            error_code=code,
            error_detail=detail[:400],
            error_step="preflight",
        )
        parts.note(swap, "preflight_failed", part=part, detail=code)
        _release(swap)
    alerts.open_alert("swap_failed", swap=swap, detail=code)


def _next_replica(swap: Swap, found: list[SwapReplica], now: datetime) -> None:
    part = next((part for part in found if part.state != State.DONE), None)
    if part is None:
        _finish(swap)
    elif part.state == State.WAITING:
        _try_to_begin(swap, part, now)
    elif part.state == State.CHANGING:
        _watch_change(swap, part)
    else:
        _watch_service(swap, part, found, now)


def _try_to_begin(swap: Swap, part: SwapReplica, now: datetime) -> None:
    """Never fewer than all but one: the others have to serve before one is taken out."""
    if swap.paused_at:
        return
    if part.replica.server.silent(now):
        parts.wait(swap, "server_silent")
    elif parts.others(part).exclude(state=ReplicaState.SERVING).exists():
        parts.wait(swap, "others_not_serving")
    else:
        parts.wait(swap, "")
        parts.send(part, swap.to_model, State.CHANGING)


def _watch_change(swap: Swap, part: SwapReplica) -> None:
    replica = part.replica
    if replica.state == ReplicaState.FAILED or replica.error_code == "drain_deadline":
        step = parts.failed_step(replica)
        parts.remember(part)
        begin_return(swap, code=replica.error_code, detail=replica.error_detail, step=step)
    elif replica.state == ReplicaState.SERVING and replica.model_id == swap.to_model_id:
        parts.mark(part, State.WATCHED)


def _watch_service(swap: Swap, part: SwapReplica, found: list[SwapReplica], now: datetime) -> None:
    """A few minutes of members' own requests, before the next one is begun."""
    replica = part.replica
    bad = replica.watch.get("bad", "")
    watched = (now - part.state_since).total_seconds()
    if replica.state != ReplicaState.SERVING or bad:
        code = replica.error_code or bad or "engine_died"
        parts.remember(part)
        begin_return(swap, code=code, detail=replica.error_detail, step="watch")
    elif watched >= swap.watch_seconds + DOUBT_SECONDS * watching.in_doubt(replica):
        parts.remember(part)
        parts.mark(part, State.DONE)
        _next_replica(swap, found, now)


def _finish(swap: Swap) -> None:
    """Once: the UPDATE on the state decides. Names are published and members told after it."""
    now = timezone.now()
    with transaction.atomic():
        running = Swap.objects.filter(pk=swap.pk, state=SwapState.RUNNING, abort_asked=False)
        if not running.update(state=SwapState.DONE, finished_at=now, waiting_code=""):
            return
        Slot.objects.filter(pk=swap.slot_id).update(model=swap.to_model, model_since=now)
        life.finish(slot=swap.slot, old=swap.from_model, new=swap.to_model)
        parts.note(swap, "done")
        _release(swap)


def _end(swap: Swap) -> None:
    """A return is over: *aborted* if people wanted it, *failed* if something broke."""
    state = SwapState.FAILED if swap.error_code else SwapState.ABORTED
    with transaction.atomic():
        returning = Swap.objects.filter(pk=swap.pk, state=SwapState.RETURNING)
        if not returning.update(state=state, finished_at=timezone.now(), waiting_code=""):
            return
        parts.note(swap, str(state.value), detail=swap.error_code)
        _release(swap)
    if swap.error_code:
        alerts.open_alert("swap_failed", swap=swap, detail=swap.error_code)


def _release(swap: Swap) -> None:
    SwapClaim.objects.filter(swap=swap).delete()
    Slot.objects.filter(pk=swap.slot_id).update(rotating_since=None)
    parts.let_go(swap)
