"""The states of a replica: what each waits for and where it goes next.

Every function looks at the row, at what the server last reported and at what was just seen, and
takes at most one step. Called again after any interruption it goes on from the row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F

from inference.fleet import alerts, specs, tell
from inference.fleet.change import move, note, write
from inference.gpu.spec import SpecError
from inference.models import AtDeadline, CatalogModel, Goal, Replica, ReplicaState, Slot
from inference.models.fleet import BEGINNING
from inference.places import Seen

JOIN_SECONDS = 90
CHECKS_SECONDS = 600
LOST_SECONDS = 20
"""A server that reports, but not about this engine, has lost it after so long."""
IDLE_LOOKS = 2
"""One look may fall between two requests of the same connection."""
RETRIES = (0, 30, 120, 600)
"""Seconds before a failed engine is started again when no swap decides; then people must."""
SETTLED = timedelta(minutes=10)
ENDLESS = ("watch_hang", "watch_unreachable")
"""Found bad so, an engine ends no request that it has: waiting for them helps nobody."""
RUN_ENDED = "run_ended"


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What was seen of one replica in this round; None: not looked at, or not reachable."""

    now: datetime
    seen: Seen | None = None
    healthy: bool | None = None
    running: int | None = None
    check: Callable[[Replica], None] = lambda _replica: None
    cut: Callable[[Replica], None] = lambda _replica: None


def advance(replica: Replica, sight: Sight) -> None:
    """May raise `change.ReplicaChanged`; then the next round goes on."""
    STEPS[ReplicaState(replica.state)](replica, sight)


def _off(replica: Replica, sight: Sight) -> None:
    if replica.wanted is not None:
        _begin(replica)


def _begin(replica: Replica, *, attempts: int = 0) -> None:
    """A new engine, under a name never used before: no late message about another can meet it."""
    model = replica.wanted
    if model is None:
        raise ValueError("Nothing is wanted of this replica.")
    move(
        replica,
        ReplicaState.STARTING,
        model=model,
        instance=f"r{replica.pk}-g{replica.goal_number}-v{replica.version}",
        names=specs.names_for(replica, model),
        attempts=attempts,
        retry_at=None,
        error_code="",
        error_detail="",
        checks=[],
        check_until=None,
        watch={},
        in_flight=0,
    )


def _starting(replica: Replica, sight: Sight) -> None:
    if _unwanted(replica):
        _stop(replica)
    elif _gone(replica):
        _fail_with_cause(replica)
    elif sight.healthy:
        move(replica, ReplicaState.CHECKING)
    elif _elapsed(replica) > _model(replica).load_seconds and replica.report:
        _fail(replica, "load_too_long")
    elif not replica.report:
        _ask_to_start(replica, sight)


def _ask_to_start(replica: Replica, sight: Sight) -> None:
    """Waits for the memory and not for the port: what held it may outlive its port."""
    model = _model(replica)
    fresh = replica.server.reported_at and replica.server.reported_at > replica.state_since
    if not _due(replica, sight):
        return
    if fresh and specs.memory_is_free(replica, model):
        try:
            spec = specs.build(replica, model, instance=replica.instance, names=replica.names)
        except SpecError as error:
            _fail(replica, "spec_refused", str(error))
            return
        tell.start(replica.server, spec)
    elif fresh and _elapsed(replica) > settings.MEMORY_SECONDS:
        _fail(replica, "memory_held")
        return
    else:
        return  # the round asks for the next report
    write(replica, told_at=sight.now)


def _checking(replica: Replica, sight: Sight) -> None:
    failed = next((outcome for outcome in replica.checks if outcome["ok"] is False), None)
    if _unwanted(replica):
        _stop(replica)
    elif _gone(replica):
        _fail_with_cause(replica)
    elif failed:
        _fail(replica, failed["code"], failed["detail"])
    elif replica.checks and all(outcome["ok"] for outcome in replica.checks):
        move(replica, ReplicaState.JOINING)
    elif (sight.now - replica.state_since).total_seconds() > CHECKS_SECONDS:
        _fail(replica, "smoke_too_long")
    elif replica.check_until is None or replica.check_until < sight.now:
        write(replica, check_until=sight.now + timedelta(seconds=30))
        sight.check(replica)


def _joining(replica: Replica, sight: Sight) -> None:
    if _unwanted(replica):
        move(replica, ReplicaState.DRAINING)
    elif _gone(replica):
        _fail_with_cause(replica)
    elif sight.seen and sight.seen.in_service:
        move(replica, ReplicaState.SERVING)
    elif sight.seen and (sight.now - replica.state_since).total_seconds() > JOIN_SECONDS:
        _fail(replica, "pool_unproven", sight.seen.status)


def _serving(replica: Replica, sight: Sight) -> None:
    if _gone(replica):
        _fail_with_cause(replica)
    elif _unwanted(replica):
        move(replica, ReplicaState.DRAINING)
    elif replica.watch.get("bad"):
        _take_out(replica, replica.watch["bad"])
    elif replica.attempts and sight.now - replica.state_since > SETTLED:
        write(replica, attempts=0)


def _take_out(replica: Replica, code: str) -> None:
    """Out of the pool unless that leaves too few; then people are told, and it stays. Asked here,
    with the slot locked, and not when it was found bad: several may be found so at once."""
    with transaction.atomic():
        Slot.objects.select_for_update(no_key=True).get(pk=replica.slot_id)
        if not _can_be_missed(replica):
            alerts.open_alert("last_replica_bad", replica=replica, detail=code)
            return
        _fail(replica, code)
        alerts.close_alert("last_replica_bad", replica=replica)
        alerts.open_alert("replica_bad", replica=replica, detail=code)


def _can_be_missed(replica: Replica) -> bool:
    """While a well one stays; where all are bad, one goes at a time, and comes back anew first."""
    others = Replica.objects.filter(slot=replica.slot_id).exclude(pk=replica.pk)
    staying = list(others.staying().filter(goal_model=F("model")))
    if not all(other.watch.get("bad") for other in staying):
        return True
    return bool(staying) and not others.filter(goal=Goal.SERVE, state__in=BEGINNING).exists()


def _draining(replica: Replica, sight: Sight) -> None:
    if not _unwanted(replica):
        move(replica, ReplicaState.JOINING)
        return
    if _gone(replica):
        _stop(replica)
        return
    if sight.seen is None or sight.seen.in_service:
        return  # not out of the pool yet: nothing may be concluded, and nothing cut
    running = max(sight.seen.sessions, sight.running or 0)
    looks = 0 if running else replica.idle_looks + 1
    if looks >= IDLE_LOOKS:
        _stop(replica)
    elif replica.watch.get("bad") in ENDLESS:
        _cut_off(replica, sight, running)
    elif (sight.now - replica.state_since).total_seconds() > replica.drain_seconds:
        _deadline(replica, sight, running)
    elif (running, looks) != (replica.in_flight, replica.idle_looks):
        write(replica, in_flight=running, idle_looks=looks)


def _deadline(replica: Replica, sight: Sight, running: int) -> None:
    if replica.at_deadline == AtDeadline.CUT:
        _cut_off(replica, sight, running)
        return
    note(replica, "drain_deadline", detail=str(running))
    move(
        replica,
        ReplicaState.JOINING,
        goal_model=replica.model,
        goal=Goal.SERVE,
        goal_number=replica.goal_number + 1,
        error_code="drain_deadline",
        error_detail=str(running),
    )


def _cut_off(replica: Replica, sight: Sight, running: int) -> None:
    sight.cut(replica)
    if running:
        note(replica, "cut", detail=str(running))
    _stop(replica)


def _stopping(replica: Replica, sight: Sight) -> None:
    ended = replica.report.get("state") == "exited" and not replica.report.get("left")
    if replica.instance and not ended:
        if _due(replica, sight):
            tell.stop(replica.server, replica.instance)
            write(replica, told_at=sight.now)
        return
    if replica.error_code:
        _rest_failed(replica, sight)
    elif replica.wanted is not None:
        _begin(replica)
    else:
        move(replica, ReplicaState.OFF, instance="", model=None, in_flight=0)


def _rest_failed(replica: Replica, sight: Sight) -> None:
    """In a swap, the swap decides what comes next. A goal that was changed meanwhile goes first."""
    again = None
    if replica.retry_at is not None:
        again = sight.now
    elif replica.swap_id is None and replica.attempts < len(RETRIES):
        again = sight.now + timedelta(seconds=RETRIES[replica.attempts])
    move(
        replica,
        ReplicaState.FAILED,
        detail=replica.error_code,
        instance="",
        model=None,
        in_flight=0,
        retry_at=again,
    )


def _failed(replica: Replica, sight: Sight) -> None:
    if replica.wanted is None:
        move(replica, ReplicaState.OFF, error_code="", error_detail="", retry_at=None)
    elif replica.retry_at is not None and replica.retry_at <= sight.now:
        _begin(replica, attempts=replica.attempts + 1)


STEPS: dict[ReplicaState, Callable[[Replica, Sight], None]] = {
    ReplicaState.OFF: _off,
    ReplicaState.STARTING: _starting,
    ReplicaState.CHECKING: _checking,
    ReplicaState.JOINING: _joining,
    ReplicaState.SERVING: _serving,
    ReplicaState.DRAINING: _draining,
    ReplicaState.STOPPING: _stopping,
    ReplicaState.FAILED: _failed,
}


def _model(replica: Replica) -> CatalogModel:
    if replica.model is None:
        raise ValueError(f"Replica {replica.pk} is {replica.state} without a model.")
    return replica.model


def _unwanted(replica: Replica) -> bool:
    return replica.wanted is None or replica.goal_model_id != replica.model_id


def _gone(replica: Replica) -> bool:
    """The server says that the engine has ended, or reports without knowing it any more."""
    if replica.report:
        return bool(replica.report["state"] == "exited")
    reported = replica.server.reported_at
    known = replica.state not in (ReplicaState.STARTING, ReplicaState.OFF)
    return bool(
        known and reported and (reported - replica.state_since).total_seconds() > LOST_SECONDS
    )


def _elapsed(replica: Replica) -> float:
    """Seconds in this state by what the server has told: its silence is nobody's slowness."""
    reported = replica.server.reported_at
    return (reported - replica.state_since).total_seconds() if reported else 0.0


def _due(replica: Replica, sight: Sight) -> bool:
    told = replica.told_at
    return told is None or (sight.now - told).total_seconds() >= tell.AGAIN


def _stop(replica: Replica) -> None:
    move(replica, ReplicaState.STOPPING)


def _fail_with_cause(replica: Replica) -> None:
    """In the engine's own words where they were understood. One that was stopped together with
    everything has not failed: it just starts again."""
    cause = replica.report.get("cause") or {}
    if cause.get("code") == RUN_ENDED:
        move(replica, ReplicaState.STOPPING, detail=RUN_ENDED)
        return
    lost = "engine_lost" if not replica.report else "engine_died"
    _fail(replica, cause.get("code") or lost, cause.get("text", ""))


def _fail(replica: Replica, code: str, detail: str = "") -> None:
    """Out of the pool first; then whatever is left of the engine is stopped."""
    move(
        replica,
        ReplicaState.STOPPING,
        detail=code,
        error_code=code,
        error_detail=detail[:400],
        last_log=replica.report.get("log", []),
        retry_at=None,
    )
