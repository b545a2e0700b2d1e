"""A chat call through edge and gateway against the gateway alone: same key, in turns."""

from typing import Any

from tests.api import payload
from tests.bench.report import Line, ms, p50, p95
from tests.bench.setting import Setting
from tests.bench.wire import Wire

BOUND = 1.1
ROUTE = "/v1/chat/completions"
WARM = 20
UNLIMITED = {"rpm_limit": 1_000_000, "max_parallel_requests": 64}


def measure(setting: Setting, *, pairs: int) -> tuple[list[Line], dict[str, Any]]:
    ways = {"edge": Wire(setting.stack.api), "gateway": Wire(setting.stack.url("gateway"))}
    key, _ = setting.generate(ways["gateway"], **UNLIMITED)
    taken: dict[str, list[float]] = {"edge": [], "gateway": []}
    for number in range(pairs + WARM):
        order = ("edge", "gateway") if number % 2 else ("gateway", "edge")
        for name in order:
            answer = ways[name].post_json(ROUTE, key=key, content=payload(ROUTE, "hello"))
            taken[name].append(answer.ok().seconds)
    taken = {name: seconds[WARM:] for name, seconds in taken.items()}
    ratio = p50(taken["edge"]) / p50(taken["gateway"])
    lines = [
        Line(
            "A chat call through the edge against the gateway alone",
            f"{ratio:.3f} ×",
            value=ratio,
            bound=BOUND,
            unit="×",
        ),
        *(
            Line(f"{name}, p50 / p95", f"{ms(p50(taken[name]))} / {ms(p95(taken[name]))}")
            for name in taken
        ),
    ]
    return lines, {"chat": taken}
