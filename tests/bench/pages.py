"""Landing, waitlist and key page while the community grows.

Each size has a database, a cache and a web part of its own, and they are asked in turns, so that
the three see the same machine. The web part is asked directly, kept-alive and warm.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.counting import PAGES
from tests.bench.report import Line, ms, p50
from tests.bench.setting import Setting, own_stack
from tests.bench.wire import Browser, Wire
from tests.stack import Stack

BOUND = 1.5
WARM = 10


def measure(
    state_dir: Path, *, sizes: Sequence[int], rounds: int
) -> tuple[list[Line], dict[str, Any]]:
    with ExitStack() as running:
        stacks = {
            size: running.enter_context(own_stack(state_dir / str(size), only="web"))
            for size in sizes
        }
        there = {size: Setting(stack).rows("fill", size) for size, stack in stacks.items()}
        taken = _ask(stacks, there, rounds)
    queries = {size: found["queries"] for size, found in there.items()}
    return list(_lines(taken, queries)), {"pages": _details(taken, queries)}


Times = dict[int, dict[str, list[float]]]


def _ask(stacks: dict[int, Stack], there: dict[int, Any], rounds: int) -> Times:
    browsers = {
        (size, page): Browser(Wire(stack.url("web")), there[size][page])
        for size, stack in stacks.items()
        for page in PAGES
    }
    taken: Times = {size: {page: [] for page in PAGES} for size in stacks}
    for number in range(rounds + WARM):
        for (size, page), browser in browsers.items():
            answer = browser.get(PAGES[page]).ok()
            if number >= WARM:
                taken[size][page].append(answer.seconds)
    return taken


def _lines(taken: Times, queries: dict[int, dict[str, int]]) -> Iterator[Line]:
    sizes = sorted(taken)
    fewest, most = sizes[0], sizes[-1]
    for page in PAGES:
        ratio = p50(taken[most][page]) / p50(taken[fewest][page])
        counts = [queries[size][page] for size in sizes]
        yield Line(
            f"{page.capitalize()}: time with {most:,} people against {fewest:,}",
            f"{ratio:.2f} ×",
            value=ratio,
            bound=BOUND,
            unit="×",
        )
        yield Line(
            f"{page.capitalize()}: queries with {', '.join(f'{size:,}' for size in sizes)}",
            " / ".join(map(str, counts)),
            value=max(counts),
            bound=counts[0],
            unit="queries",
        )
        yield Line("server time, median", " / ".join(ms(p50(taken[s][page])) for s in sizes))


def _details(taken: Times, queries: dict[int, dict[str, int]]) -> dict[str, Any]:
    return {
        str(size): {
            page: {"queries": queries[size][page], "median": p50(seconds), "worst": max(seconds)}
            for page, seconds in pages.items()
        }
        for size, pages in taken.items()
    }
