"""The usage page of a member of three years, and the pull while the community grows.

Two web parts, one with the ninety days that are shown and one with three years, are asked in
turns. Passes of the pull run against the fake gateway; what our side takes is told apart from what
the gateway takes.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.report import Line, ms, p50
from tests.bench.setting import Setting, own_stack
from tests.bench.wire import Browser, Wire

SHOWN, YEARS = 90, 3 * 365
PAGE = "/usage/?days=90"
WARM = 10
BOUND = 1.5
FEW = 10
FEW_BOUND = 3.0  # the fake gateway looks through all of its rows for each key
KEYS = (100, 1_000, 10_000)


def measure(state_dir: Path, *, rounds: int) -> tuple[list[Line], dict[str, Any]]:
    with ExitStack() as running:
        stacks = {
            days: running.enter_context(own_stack(state_dir / str(days), only="web"))
            for days in (SHOWN, YEARS)
        }
        there = {days: Setting(stack).rows("years", days) for days, stack in stacks.items()}
        browsers = {
            days: Browser(Wire(stack.url("web")), there[days]["session"])
            for days, stack in stacks.items()
        }
        taken = _ask(browsers, rounds)
        passes = {count: Setting(stacks[SHOWN]).rows("passes", count) for count in KEYS}
    lines = [_page(taken, {days: found["queries"] for days, found in there.items()})]
    return [*lines, *_pulls(passes)], {"usage": {"page": taken, "passes": passes}}


def _ask(browsers: dict[int, Browser], rounds: int) -> dict[int, list[float]]:
    taken: dict[int, list[float]] = {days: [] for days in browsers}
    for number in range(rounds + WARM):
        for days, browser in browsers.items():
            answer = browser.get(PAGE).ok()
            if number >= WARM:
                taken[days].append(answer.seconds)
    return taken


def _page(taken: dict[int, list[float]], queries: dict[int, int]) -> Line:
    ninety, years = p50(taken[SHOWN]), p50(taken[YEARS])
    return Line(
        "usage page, with three years of days against ninety",
        f"{ms(ninety)} / {ms(years)}, {queries[SHOWN]} / {queries[YEARS]} queries",
        years / ninety,
        BOUND,
        unit="×",
    )


def _pulls(passes: dict[int, Any]) -> Iterator[Line]:
    """A changed row costs the same whether it is one of many, or one of ten among many."""
    most, some = KEYS[-1], KEYS[-2]
    each = {count: passes[count]["all"]["ours"] / count for count in KEYS}
    yield Line(
        f"usage pull, each row when all of {_numbers(KEYS)} changed",
        " / ".join(ms(each[count]) for count in KEYS),
        each[most] / each[some],
        BOUND,
        unit="×",
    )
    few = {count: sum(passes[count]["few"].values()) / FEW for count in KEYS}
    yield Line(
        "usage pull, each row when ten of them changed, with the gateway",
        " / ".join(ms(few[count]) for count in KEYS),
        few[most] / few[some],
        FEW_BOUND,
        unit="×",
    )
    none = " / ".join(ms(passes[count]["none"]["ours"]) for count in KEYS)
    yield Line("  a pass with nothing changed", none)
    whole = " / ".join(ms(passes[count]["all"]["gateway"]) for count in KEYS)
    yield Line("  the (fake) gateway's part of a whole day", whole)


def _numbers(values: Sequence[int]) -> str:
    return " / ".join(f"{value:,}" for value in values)
