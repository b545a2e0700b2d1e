"""Two hundred people approved with one click, and two hundred keys asked for at once."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from tests.bench.approval import shown
from tests.bench.report import Line, ms
from tests.bench.setting import Setting
from tests.bench.wire import Browser, Wire

BOUND = 0.8
CONCURRENCY = 8
CLICKS = 32
"""Connections over which the two hundred requests come; more only wait at the edge."""
SHOWN = 10


def measure(setting: Setting, *, people: int) -> tuple[list[Line], dict[str, Any]]:
    crowd = setting.rows("applicants", people)
    began = time.perf_counter()
    setting.approve([person["application"] for person in crowd])
    approval = time.perf_counter() - began
    before = _raw(setting, people // 2)
    ours = _keys(setting, crowd)
    after = _raw(setting, people // 2)
    raw = people // 2 * 2 / (before + after)
    ratio = people / ours / raw
    lines = [
        Line(
            f"{people} keys asked for at once: rate against raw /key/generate",
            f"{ratio:.2f} ×",
            value=ratio,
            bound=BOUND,
            at_least=True,
            unit="×",
        ),
        Line("first click to the last key", f"{ours:.1f} s: {people / ours:.1f} keys/s"),
        Line(f"/key/generate alone, {CONCURRENCY} at a time", f"{raw:.1f} keys/s"),
        Line(f"{people} people approved with one click", ms(approval)),
    ]
    details = {"approve": approval, "ours": ours, "raw_before": before, "raw_after": after}
    return lines, {"storm": details}


def _raw(setting: Setting, count: int) -> float:
    """Seconds for `count` keys by LiteLLM alone."""

    def make(number: int) -> None:
        share = count // CONCURRENCY + (number < count % CONCURRENCY)
        gateway = Wire(setting.stack.url("gateway"))
        for _ in range(share):
            setting.generate(gateway)

    began = time.perf_counter()
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        list(pool.map(make, range(CONCURRENCY)))
    return time.perf_counter() - began


def _keys(setting: Setting, crowd: list[dict[str, Any]]) -> float:
    """Seconds from the first click to the last key that the gateway has made; some are tried."""
    browsers = [Browser(Wire(setting.stack.site), person["session"]) for person in crowd]
    began = datetime.now(UTC)
    with ThreadPoolExecutor(CLICKS) as pool:
        for answer in pool.map(lambda browser: browser.post("/key/create"), browsers):
            answer.ok(302)
    made = setting.until_made([person["owner"] for person in crowd], every=0.1)
    api = Wire(setting.stack.api)
    for browser in browsers[:: max(1, len(browsers) // SHOWN)]:
        key = shown(browser.post("/key/reveal").ok())
        api.get_api("/v1/models", key=key).ok()
    return (made - began).total_seconds()
