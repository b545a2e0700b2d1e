"""Counting against another implementation, casting with twenty at once, a page of 10,000 ballots.

pref_voting reads rankings into its profile before it can answer, as our count reads them: both
times begin with plain lists and end with the winners.
"""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from members.tally import Ranking, count
from tests.bench import inside
from tests.bench.report import Line, ms, p50, p95
from tests.bench.setting import own_stack
from tests.bench.wire import Answer, Browser, Wire
from tests.stack import Stack

BALLOTS, OPTIONS = 10_000, 10
VOTERS, POSTS = 20, 10
FASTER = 10
PAGE_BYTES = 100_000


def measure(state_dir: Path) -> tuple[list[Line], dict[str, Any]]:
    lines = counting()
    with own_stack(state_dir / "tally", only="web") as stack:
        lines += casting(stack)
        lines += closing(stack)
    return lines, {}


# -- Counting -----------------------------------------------------------------------------------
def counting() -> list[Line]:
    options = [f"option-{number}" for number in range(OPTIONS)]
    rng = random.Random(4)
    ballots = [_ranking(rng, options) for _ in range(BALLOTS)]
    ours, winners = _best_of(7, lambda: count(options, ballots).winners)
    theirs, same = _best_of(3, lambda: _pref_voting(options, ballots))
    if winners != same:
        raise SystemExit(f"Different winners: {winners}, {same}")
    faster = theirs / ours
    return [
        Line(
            f"Counting {BALLOTS:,} ballots of {OPTIONS} options against pref_voting",
            f"{faster:.0f} × faster",
            value=faster,
            bound=FASTER,
            at_least=True,
            unit="×",
        ),
        Line("ours / pref_voting", f"{ms(ours)} / {ms(theirs)}"),
    ]


def _ranking(rng: random.Random, options: list[str]) -> Ranking:
    ranked = rng.sample(options, rng.randint(1, len(options)))
    return [[option] for option in ranked]


def _best_of(times: int, work: Any) -> tuple[float, Any]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        found = work()
        taken.append(time.perf_counter() - began)
    return min(taken), found


def _pref_voting(options: list[str], ballots: list[Ranking]) -> tuple[str, ...]:
    """Unranked options below ranked ones, as we count them."""
    from pref_voting.margin_based_methods import beat_path
    from pref_voting.profiles_with_ties import ProfileWithTies

    number = {option: n for n, option in enumerate(options)}
    ranks = [
        {number[option]: place for place, group in enumerate(ranking) for option in group}
        for ranking in ballots
    ]
    profile = ProfileWithTies(ranks, candidates=list(number.values()))
    profile.use_extended_strict_preference()
    return tuple(sorted(options[n] for n in beat_path(profile)))


# -- Casting ------------------------------------------------------------------------------------
def casting(stack: Stack) -> list[Line]:
    """Each voter posts again and again over her own connection, straight to the web part."""
    there = inside.ask(stack, "voters", "open", VOTERS)
    fields = {f"rank:{code}": str(place) for place, code in enumerate(there["options"], start=1)}
    browsers = [Browser(Wire(stack.url("web")), session) for session in there["sessions"]]
    alone = [_post(browsers[0], fields).seconds for _ in range(POSTS)][1:]

    def vote(browser: Browser) -> list[float]:
        return [_post(browser, fields).seconds for _ in range(POSTS)]

    with ThreadPoolExecutor(VOTERS) as pool:
        together = [seconds for taken in pool.map(vote, browsers) for seconds in taken]
    return [
        Line(f"Casting a ballot, {VOTERS} voters at once: p95", ms(p95(together)),
             value=p95(together) * 1000, bound=1000, unit="ms"),
        Line("median / one voter alone", f"{ms(p50(together))} / {ms(p50(alone))}"),
    ]  # fmt: skip


def _post(browser: Browser, fields: dict[str, str]) -> Answer:
    return browser.post("/vote/bench/", **fields).ok(302)


def closing(stack: Stack) -> list[Line]:
    """The close of 10,000 ballots, and what the result page weighs then."""
    sessions = inside.ask(stack, "voters", "close", BALLOTS)
    if sessions["state"] != "closed":
        raise SystemExit(f"Not closed: {sessions}")
    reader = Browser(
        Wire(stack.url("web")), inside.ask(stack, "voters", "reader", 1)["sessions"][0]
    )
    page = reader.get("/vote/bench/result/").ok()
    return [
        Line(f"Closing with {sessions['ballots']:,} ballots", f"{sessions['seconds']:.2f} s"),
        Line(f"Result page with {sessions['ballots']:,} ballots", f"{len(page.body):,} bytes",
             value=len(page.body), bound=PAGE_BYTES, unit="bytes"),
    ]  # fmt: skip
