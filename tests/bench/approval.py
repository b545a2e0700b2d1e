"""From an admin's click on *Approve* to a key that answers, against LiteLLM's /key/generate alone.

Our share is all of the way but the time that LiteLLM takes to make a key: total − generate. The
bound holds it against that time: (total − generate) / generate. Both are taken in pairs, one right
after the other, in turns; the median is that of the pairs.

Her page looks once a second whether the key is there; what she waits for that is no speed of ours
and is left out: she asks for the key at the moment at which its row says that it is there.
"""

import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

from tests.bench.report import Line, ms, p50, p95
from tests.bench.setting import Setting
from tests.bench.wire import Answer, Browser, Wire

BOUND = 1.3
KEY = re.compile(r"sk-[A-Za-z0-9_-]{20,}")


@dataclass(frozen=True)
class Way:
    """One person's way in; the stages in seconds, in their order."""

    generate: float
    first_call: float
    decide: float
    create: float
    made: float
    reveal: float
    answers: float

    @property
    def total(self) -> float:
        return self.decide + self.create + self.made + self.reveal + self.answers

    @property
    def share(self) -> float:
        return (self.total - self.generate) / self.generate

    @property
    def own_share(self) -> float:
        """Without what LiteLLM takes to meet a new key, which it does for its own keys too."""
        return (self.total - self.generate - self.first_call) / self.generate


def measure(setting: Setting, *, people: int) -> tuple[list[Line], dict[str, Any]]:
    ways = list(_ways(setting, people))[2:]  # the first two warm every part
    totals, raw = [way.total for way in ways], [way.generate for way in ways]
    ours = p50([way.share for way in ways])
    gateway = p50([way.first_call for way in ways])
    lines = [
        Line(
            "Approval click to a key that answers: our share beyond /key/generate",
            f"{ours:.2f} × /key/generate",
            value=ours,
            bound=BOUND,
            unit="×",
        ),
        Line("total, p50 / p95", f"{ms(p50(totals))} / {ms(p95(totals))}"),
        Line("/key/generate alone, p50 / p95", f"{ms(p50(raw))} / {ms(p95(raw))}"),
        Line("a new key's first call, at the gateway alone", ms(gateway)),
        Line(
            "our share without that call", f"{p50([w.own_share for w in ways]):.2f} × /key/generate"
        ),
        *(Line(what, ms(p50([getattr(way, name) for way in ways]))) for name, what in STAGES),
    ]
    return lines, {"approval": [{**vars(way), "total": way.total} for way in ways]}


STAGES = (
    ("decide", "of it: approve (POST decide)"),
    ("create", "of it: ask for the key (POST create)"),
    ("made", "of it: until the page has it"),
    ("reveal", "of it: show it (POST reveal)"),
    ("answers", "of it: first call (GET /v1/models)"),
)


def _ways(setting: Setting, people: int) -> Iterator[Way]:
    gateway, api = Wire(setting.stack.url("gateway")), Wire(setting.stack.api)
    for number, person in enumerate(setting.rows("applicants", people)):
        browser = Browser(Wire(setting.stack.site), person["session"])
        before = setting.generate(gateway) if number % 2 else None
        stages = list(_let_in(setting, person, browser, api))
        key, generate = before or setting.generate(gateway)
        first = gateway.get_api("/v1/models", key=key).ok().seconds
        seconds = [later - earlier for earlier, later in itertools.pairwise(stages)]
        yield Way(generate, first, *seconds)


def _let_in(
    setting: Setting, person: dict[str, Any], browser: Browser, api: Wire
) -> Iterator[float]:
    """The moments between the stages."""
    yield time.perf_counter()
    setting.approve([person["application"]])
    yield time.perf_counter()
    browser.post("/key/create").ok(302)
    yield time.perf_counter()
    setting.until_made([person["owner"]], every=0.003)
    yield time.perf_counter()
    key = shown(browser.post("/key/reveal").ok())
    yield time.perf_counter()
    api.get_api("/v1/models", key=key).ok()
    yield time.perf_counter()


def shown(page: Answer) -> str:
    found = KEY.search(unescape(page.text))
    if found is None:
        raise SystemExit(f"The page shows no key:\n{page.text}")
    return found[0]
