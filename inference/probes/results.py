"""What probes found, for pages: the table of all calls, and one page's badge."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import F
from django.utils.functional import Promise

from inference.models import CatalogModel, ProbeResult, ProbeRun, Slot
from inference.probes.calls import BY_NAME, CALLS, Call, claimed
from inference.probes.words import for_members


class Verdict(StrEnum):
    WORKS = "works"
    FAILS = "fails"
    NOT_OFFERED = "not_offered"
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True, kw_only=True)
class Badge:
    """About the calls that a page needs, with the model of the moment."""

    verdict: Verdict
    model: str
    at: datetime | None = None
    call: Promise | str = ""
    reason: Promise | str = ""


def badge(needs: Sequence[str], slots: Iterable[Slot | None]) -> Badge | None:
    """One query. None for a page that needs no call, or while nothing runs."""
    running = [slot for slot in slots if slot and slot.model]
    calls = [BY_NAME[name] for name in needs]
    if not (calls and running):
        return None
    found = ProbeResult.objects.filter(slot__in=running, model=F("slot__model"), call__in=needs)
    results = {(result.slot_id, result.call): result for result in found}
    pairs = [(call, _slot_for(call, running)) for call in calls]
    rows = [
        (call, slot, results.get((slot.pk, call.name)) if slot else None) for call, slot in pairs
    ]
    return _badge(rows, fallback=running[0])


def _slot_for(call: Call, slots: Sequence[Slot]) -> Slot | None:
    """The one whose kind the call is of."""
    return next((slot for slot in slots if slot.kind in call.needs), None)


def _badge(rows: Sequence[tuple[Call, Slot | None, ProbeResult | None]], fallback: Slot) -> Badge:
    title = next((str(slot.model) for _call, slot, _result in rows if slot), str(fallback.model))
    for call, slot, _result in rows:
        if slot is None or slot.model is None or not call.needs <= claimed(slot.model):
            return Badge(verdict=Verdict.NOT_OFFERED, model=title, call=call.title)
    for call, _slot, result in rows:
        if result and not result.ok:
            return Badge(
                verdict=Verdict.FAILS,
                model=title,
                at=result.checked_at,
                call=call.title,
                reason=for_members(result.code),
            )
    known = [result.checked_at for _call, _slot, result in rows if result]
    if len(known) < len(rows):
        return Badge(verdict=Verdict.NOT_CHECKED, model=title)
    return Badge(verdict=Verdict.WORKS, model=title, at=min(known))


# -- The table ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Cell:
    offered: bool
    result: ProbeResult | None

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
        open_runs=list(ProbeRun.objects.open().select_related("slot", "model")),
    )


def _cell(call: Call, column: Column, results: dict[tuple[int, int, str], ProbeResult]) -> Cell:
    return Cell(
        offered=call.needs <= claimed(column.model),
        result=results.get((column.slot.pk, column.model.pk, call.name)),
    )
