"""What probes found, for pages: the table of all calls, and each page's badge."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import F
from django.utils.functional import Promise

from inference.models import CatalogModel, ProbeResult, ProbeRun, Slot
from inference.probes.calls import BY_NAME, CALLS, Call, claimed, cut_to
from inference.probes.words import for_members


class Verdict(StrEnum):
    WORKS = "works"
    FAILS = "fails"
    NOT_OFFERED = "not_offered"
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True, kw_only=True)
class State:
    """Of one call, with the model that answers it now."""

    call: Call
    verdict: Verdict
    at: datetime | None = None
    reason: Promise | str = ""


@dataclass(frozen=True, kw_only=True)
class Badge:
    """About the calls that a page needs, with the model of the moment. It says nothing of the
    client itself: for that see `inference.docs.verified`."""

    verdict: Verdict
    """Of the worst of them."""
    model: str
    states: Sequence[State]
    at: datetime | None = None
    """Of the oldest check, where all have been made."""


WORST = (Verdict.FAILS, Verdict.NOT_OFFERED, Verdict.NOT_CHECKED, Verdict.WORKS)


def badge(needs: Sequence[str], slots: Iterable[Slot | None]) -> Badge | None:
    """None for a page that needs no call, or while nothing runs."""
    return badges({"": needs}, slots)[""]


def badges(
    needs: Mapping[str, Sequence[str]], slots: Iterable[Slot | None]
) -> dict[str, Badge | None]:
    """By the same names as `needs`. One query, however many pages."""
    running = [slot for slot in slots if slot and slot.model]
    found = ProbeResult.objects.filter(slot__in=running, model=F("slot__model"))
    results = {(result.slot_id, result.call): result for result in found} if running else {}
    return {name: _badge(calls, running, results) for name, calls in needs.items()}


def _badge(
    names: Sequence[str], running: Sequence[Slot], results: Mapping[tuple[int, str], ProbeResult]
) -> Badge | None:
    calls = [BY_NAME[name] for name in names]
    if not (calls and running):
        return None
    slots = [_slot_for(call, running) for call in calls]
    states = [_state(call, slot, results) for call, slot in zip(calls, slots, strict=True)]
    checked = [state.at for state in states if state.at]
    return Badge(
        verdict=min((state.verdict for state in states), key=WORST.index),
        model=str(next((slot for slot in slots if slot), running[0]).model),
        states=states,
        at=min(checked) if len(checked) == len(states) else None,
    )


def _slot_for(call: Call, slots: Sequence[Slot]) -> Slot | None:
    """The one whose kind the call is of."""
    return next((slot for slot in slots if slot.kind in call.needs), None)


def _state(call: Call, slot: Slot | None, results: Mapping[tuple[int, str], ProbeResult]) -> State:
    if slot is None or slot.model is None or not call.needs <= claimed(slot.model):
        return State(call=call, verdict=Verdict.NOT_OFFERED)
    result = results.get((slot.pk, call.name))
    if result is None:
        return State(call=call, verdict=Verdict.NOT_CHECKED)
    if result.ok:
        return State(call=call, verdict=Verdict.WORKS, at=result.checked_at)
    reason = for_members(result.code)
    return State(call=call, verdict=Verdict.FAILS, at=result.checked_at, reason=reason)


# -- The table ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Cell:
    offered: bool
    result: ProbeResult | None
    cut_to: int | None
    """Tokens of the prompt, if they were far fewer than the model's context."""

    @property
    def reason(self) -> Promise | str:
        return for_members(self.result.code) if self.result and not self.result.ok else ""


@dataclass(frozen=True, kw_only=True)
class Column:
    slot: Slot
    model: CatalogModel
    runs_now: bool
    checked_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Table:
    columns: list[Column]
    rows: list[tuple[Call, list[Cell]]]
    open_runs: list[ProbeRun]
    checked_at: datetime | None
    """When the last call was made, of any model."""


MODELS = 6
"""Columns at most: what runs now, and what ran before it."""


def table() -> Table:
    """Three queries, however many results there are."""
    slots = list(Slot.objects.select_related("model").exclude(model=None).order_by("number"))
    found = ProbeResult.objects.select_related("slot__model", "model").order_by("-checked_at")
    results = list(found[: MODELS * len(CALLS) * 2])
    keys = [(slot, slot.model) for slot in slots if slot.model]
    for result in results:
        if (result.slot, result.model) not in keys and len(keys) < MODELS:
            keys.append((result.slot, result.model))
    by_place = {(r.slot_id, r.model_id, r.call): r for r in results}
    latest: dict[tuple[int, int], datetime] = {}
    for result in results:
        latest.setdefault((result.slot_id, result.model_id), result.checked_at)
    columns = [
        Column(
            slot=slot,
            model=model,
            runs_now=slot.model_id == model.pk,
            checked_at=latest.get((slot.pk, model.pk)),
        )
        for slot, model in keys
    ]
    rows = [(call, [_cell(call, column, by_place) for column in columns]) for call in CALLS]
    return Table(
        columns=columns,
        rows=rows,
        checked_at=max(latest.values(), default=None),
        open_runs=list(ProbeRun.objects.open().select_related("slot", "model")),
    )


def _cell(call: Call, column: Column, results: dict[tuple[int, int, str], ProbeResult]) -> Cell:
    return Cell(
        offered=call.needs <= claimed(column.model),
        cut_to=cut_to(call, column.model.context_length),
        result=results.get((column.slot.pk, column.model.pk, call.name)),
    )
