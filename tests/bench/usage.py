"""The usage page of a member of three years, and the pull while the community grows.

Two web parts, one with the ninety days that are shown and one with three years, in turns.
pull run against the fake gateway; what our side takes is told apart from what the gateway takes.
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
    """A row costs the same however many there are; so do a few, but for the reading."""
    each = {count: passes[count]["all"]["ours"] / count for count in KEYS}
    most, some = KEYS[-1], KEYS[-2]
    yield Line(
        f"usage pull, a changed row among {_numbers(KEYS)} keys",
        " / ".join(ms(each[count]) for count in KEYS),
        each[most] / each[some],
        BOUND,
        unit="×",
    )
    for name, words in (("few", "ten rows changed"), ("none", "nothing changed")):
        ours = " / ".join(ms(passes[count][name]["ours"]) for count in KEYS)
        yield Line(f"  a pass with {words}, our share", ours)
    theirs = " / ".join(ms(passes[count]["none"]["gateway"]) for count in KEYS)
    yield Line("  reading a day from the (fake) gateway", theirs)


def _numbers(values: Sequence[int]) -> str:
    return " / ".join(f"{value:,}" for value in values)
