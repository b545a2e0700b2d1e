"""Asking for runs of probes and making them, a few calls at a time.

A run is a row; whichever worker claims it goes on with the calls that are left. A call that fails
is made once more at the end of its run: only what fails twice counts.
"""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from inference import smoke, wake
from inference.engine import Engine
from inference.fleet.alerts import close_alert, open_alert
from inference.models import (
    ProbeResult,
    ProbeRun,
    ProbeRunState,
    Replica,
    Slot,
    Swap,
    SwapState,
)
from inference.probes import own_key, told
from inference.probes.calls import BY_NAME, LIMITED, calls_for, claimed

log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=150)
TASK_SECONDS = 5
"""No further call is begun after this; one takes up to twenty-five more, the longest prompt 110."""
KEY_SECONDS = 8
LIMITS = smoke.Limits(first=20, whole=25)
"""More patience than a smoke test has: members use the same engine meanwhile."""
Cause = ProbeRun.Cause
SETTLED = timedelta(minutes=5)
"""Of serving, before the first check: who starts the product looks around first."""
NO_FAULT = ("probe_model_changed", "probe_model_away")
"""Why a run may end early without an alert: there are others for a model that is away."""


class NotAsked(Exception):
    """No run was asked for; the code says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def ask(*, slots: Iterable[Slot], cause: str, swap: Swap | None = None) -> list[ProbeRun]:
    """One run for each slot whose model answers; the one that is open already, if there is."""
    found = answering().filter(pk__in=[slot.pk for slot in slots])
    runs = [
        _new(slot, cause, swap) or ProbeRun.objects.open().get(slot=slot) for slot in list(found)
    ]
    wake.probes()
    return runs


def ask_for_all() -> list[ProbeRun]:
    """New ones, for every slot that can be checked now. Raises NotAsked."""
    slots = list(_settled_slots())
    if not slots:
        raise NotAsked("probe_nothing_answers")
    made = [run for slot in slots if (run := _new(slot, Cause.ASKED))]
    if not made:
        raise NotAsked("probe_asked_already")
    wake.probes()
    return made


def _new(slot: Slot, cause: str, swap: Swap | None = None) -> ProbeRun | None:
    """None: one is open."""
    if slot.model is None:
        return None
    calls = [[call.name, 1] for call in calls_for(slot.model)]
    try:
        with transaction.atomic():
            return ProbeRun.objects.create(
                slot=slot, model=slot.model, cause=cause, swap=swap, left=calls
            )
    except IntegrityError:
        return None


def answering() -> "QuerySet[Slot]":
    """Of others, such as one that was taken out, probes would only tell that nobody answers."""
    serving = Replica.objects.staying().filter(slot=OuterRef("pk"), model=OuterRef("model"))
    return Slot.objects.filter(Exists(serving)).select_related("model").order_by("number")


# -- What is due --------------------------------------------------------------------------------


def ask_due(now: datetime) -> None:
    """A few minutes after a slot's first model began to serve, after each swap, and each night; if
    later, when everything was stopped. Nothing while a slot's model is being changed."""
    if not settings.PROBES:
        return
    night = _last_night(now)
    of_model = Q(probe_runs__model=F("model"))
    for slot in _settled_slots().annotate(last=Max("probe_runs__asked_at", filter=of_model)):
        swap = _last_swap(slot)
        if swap and swap.finished_at and (slot.last is None or slot.last < swap.finished_at):
            ask(slots=[slot], cause=Cause.SWAP, swap=swap)
        elif slot.last is None:
            if _serves_since(slot) <= now - SETTLED:
                ask(slots=[slot], cause=Cause.FIRST)
        elif max(filter(None, (slot.last, slot.model_since))) < night:
            ask(slots=[slot], cause=Cause.NIGHT)


def _settled_slots() -> "QuerySet[Slot]":
    moving = Swap.objects.active().filter(slot=OuterRef("pk"))
    return answering().filter(~Exists(moving))


def _serves_since(slot: Slot) -> datetime:
    """The first of its engines that do."""
    serving = Replica.objects.staying().filter(slot=slot, model=slot.model)
    since: datetime | None = serving.aggregate(since=Min("state_since"))["since"]
    return since or datetime.max.replace(tzinfo=UTC)


def _last_swap(slot: Slot) -> Swap | None:
    done = Swap.objects.filter(slot=slot, state=SwapState.DONE, to_model=slot.model)
    return done.order_by("-finished_at").first()


def _last_night(now: datetime) -> datetime:
    """The latest moment at which the hour of the probes struck."""
    local = timezone.localtime(now)
    today = local.replace(hour=settings.PROBES_HOUR, minute=0, second=0, microsecond=0)
    return today if today <= local else today - timedelta(days=1)


# -- Making them --------------------------------------------------------------------------------


def advance() -> bool:
    """Goes on with the open run; True if there is more to do at once."""
    now = timezone.now()
    ask_due(now)
    run = _claim(now)
    if run is None:
        return False
    try:
        _go_on(run)
    except own_key.NoKey as problem:
        _fail(run, problem.code)
    finally:
        ProbeRun.objects.filter(pk=run.pk, lease_until=run.lease_until).update(lease_until=None)
    return ProbeRun.objects.open().exists()


def _claim(now: datetime) -> ProbeRun | None:
    """The one that runs, else the oldest that waits; None while a worker is at it."""
    open_runs = ProbeRun.objects.open().select_related("slot", "model")
    run = open_runs.filter(state=ProbeRunState.RUNNING).first() or open_runs.order_by("pk").first()
    if run is None:
        return None
    lease = now + LEASE
    if not ProbeRun.objects.free(now).filter(pk=run.pk).update(lease_until=lease):
        return None
    run.lease_until = lease
    return run


def _go_on(run: ProbeRun) -> None:
    if run.is_late(timezone.now()):
        _fail(run, "probe_too_long")
    elif unfit := _unfit(run):
        _fail(run, unfit)
    elif run.state == ProbeRunState.ASKED:
        _start(run)
    elif value := _value(run):
        _make_calls(run, value)


def _unfit(run: ProbeRun) -> str:
    """A code, if another model may be answering, or none: what comes must not be told of this
    one."""
    unchanged = Slot.objects.filter(pk=run.slot_id, model=run.model_id)
    if not unchanged.exists() or Swap.objects.active().filter(slot=run.slot_id).exists():
        return "probe_model_changed"
    return "" if answering().filter(pk=run.slot_id).exists() else "probe_model_away"


def _start(run: ProbeRun) -> None:
    try:
        with transaction.atomic():
            key = own_key.ask(run)
            _write(run, state=ProbeRunState.RUNNING, key=key, started_at=timezone.now())
    except IntegrityError:  # another run began in this moment; this one waits for its end
        return


def _value(run: ProbeRun) -> str | None:
    """Waits a little for the gateway worker; None if it needs longer."""
    deadline = time.monotonic() + KEY_SECONDS
    while (value := own_key.value(run)) is None and time.monotonic() < deadline:
        time.sleep(0.3)
    return value


def _make_calls(run: ProbeRun, value: str) -> None:
    began = time.monotonic()
    with Engine(settings.API_URL, value) as client:
        while run.left and time.monotonic() - began < TASK_SECONDS:
            (name, attempt), *rest = run.left
            outcome = _probe(name, client, target(run))
            if not outcome.ok and attempt == 1:
                rest.append([name, 2])
            elif _unfit(run):
                return
            else:
                _store(run, name, outcome)
            _write(run, left=rest)
    if not run.left:
        _finish(run)


def target(run: ProbeRun) -> smoke.Target:
    return smoke.Target(
        name=run.slot.name,
        names=(run.slot.name, run.model.name),
        capabilities=claimed(run.model),
        context=run.model.context_length,
    )


def _probe(name: str, client: Engine, about: smoke.Target) -> smoke.Outcome:
    call = BY_NAME[name]
    outcome = smoke.judge(call.run, client, about, limits=call.limits or LIMITS)
    if outcome.detail == LIMITED:
        return smoke.Outcome(ok=False, code="probe_limited", seconds=outcome.seconds)
    return outcome


def _store(run: ProbeRun, name: str, outcome: smoke.Outcome) -> None:
    ProbeResult.objects.update_or_create(
        slot=run.slot,
        model=run.model,
        call=name,
        defaults={
            "ok": outcome.ok,
            "code": outcome.code,
            "detail": outcome.detail[:200],
            "seconds": outcome.seconds,
            "checked_at": timezone.now(),
            "run": run,
        },
    )


def _write(run: ProbeRun, **values: Any) -> None:
    """Only while the claim is ours: a worker that was away too long writes nothing."""
    ours = ProbeRun.objects.filter(pk=run.pk, lease_until=run.lease_until)
    if ours.update(**values):
        for name, value in values.items():
            setattr(run, name, value)
    else:
        log.warning("probe_claim_lost", run=run.pk)
        run.left = []


# -- Ending -------------------------------------------------------------------------------------


def _finish(run: ProbeRun) -> None:
    if not _end(run, ProbeRunState.DONE):
        return
    known = [call.name for call in calls_for(run.model)]
    ProbeResult.objects.filter(slot=run.slot, model=run.model).exclude(call__in=known).delete()
    failed = list(run.results.filter(ok=False).values_list("call", "code"))
    close_alert("probe_run_failed", slot=run.slot)
    if failed:
        open_alert("probe_failed", slot=run.slot, detail=told.noted(run.model.name, failed))
    else:
        close_alert("probe_failed", slot=run.slot)
    log.info("probes_made", slot=run.slot.name, model=run.model.name, failed=len(failed))


def _fail(run: ProbeRun, code: str) -> None:
    if not _end(run, ProbeRunState.FAILED, code):
        return
    log.warning("probes_not_made", slot=run.slot.name, code=code)
    if code not in NO_FAULT:
        open_alert("probe_run_failed", slot=run.slot, detail=code)


def _end(run: ProbeRun, state: str, code: str = "") -> bool:
    """Whether it was this worker that ended it. Its key goes with it."""
    ours = ProbeRun.objects.filter(pk=run.pk, lease_until=run.lease_until, state__in=ProbeRun.OPEN)
    if not ours.update(state=state, error_code=code, finished_at=timezone.now()):
        return False
    own_key.give_back(run)
    return True
