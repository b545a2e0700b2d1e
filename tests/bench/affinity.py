"""leastconn against consistent-hash affinity: agents' sessions over simulated engines.

A session is an agent at work: every turn sends all that was said before plus a tool's result, so
the engine that served the last turn has nearly all of the prompt in its prefix cache. Behind a real
HAProxy with each balance in turn, the same sessions from the same seed: over four engines with the
pool only, and over two with the gateway in front, which then says what belongs together. The
simulated engines need time for what their cache lacks, and their caches hold FIT times what one
engine's share of the sessions needs. Each balance has two turns, the first one also the last, so
that a machine that gets busier counts for both. Alone: python -m tests.bench --only affinity
"""

import asyncio
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from inference.places import Place
from tests.bench.gateway import gateway_before, members
from tests.bench.report import Line, ms, p50, p95
from tests.inference.pool.proxy import CHAT, Proxy, running
from tests.inference.simulator.engines import RunningEngine, metric
from tests.inference.simulator.engines import running as engine_running
from tests.ports import free_port

PREFILL = 8_000  # tokens per second, as an engine of 35B parameters with 3B active on one GPU
SPEED = 60  # tokens per second of an answer
THINK = 0.4  # mean seconds between turns: a tool at work
FIT = {"roomy": 1.5, "tight": 0.75}
BALANCES = ("leastconn", "affinity")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of one session; lengths in words, which are tokens to the simulator."""

    turns: int = 10
    system: int = 1_000
    first: int = 2_000
    turn: int = 600
    answer: int = 24

    @property
    def longest(self) -> int:
        return self.system + self.first + self.turns * (self.turn + self.answer)


@dataclass(frozen=True)
class Sessions:
    """As many as `headers`: what each of them sends with every request. What is said in them
    follows from the `seed` alone."""

    engines: int
    url: str
    headers: Sequence[dict[str, str]]
    shape: Shape = field(default_factory=Shape)
    seed: int = 0

    def cache_tokens(self, factor: float) -> int:
        return int(factor * len(self.headers) * self.shape.longest / self.engines)

    def chance(self, number: int) -> random.Random:
        return random.Random(self.seed * 1000 + number)


@dataclass
class Taken:
    first: list[float] = field(default_factory=list)
    """Seconds to the first token in a session's first turn, and in all others."""
    later: list[float] = field(default_factory=list)
    failed: int = 0
    asked: int = 0
    hit_rates: list[float] = field(default_factory=list)
    busiest: list[float] = field(default_factory=list)
    """Requests of the busiest engine to the mean of all."""
    at_engines: list[float] = field(default_factory=list)
    """Mean time to the first token as the engines count it: without gateway and proxy."""


def measure() -> tuple[list[Line], dict[str, Any]]:
    found: dict[str, Taken] = {}
    port = free_port()
    headers = [{"x-affinity": f"session-{number}"} for number in range(16)]
    pool_only = Sessions(4, f"http://127.0.0.1:{port}{CHAT}", headers)
    _measure_all("pool", pool_only, port, found)
    with gateway_before(f"http://127.0.0.1:{port}/chat/v1") as gateway, members(gateway, 4) as keys:
        whole = Sessions(2, f"{gateway.url}/v1/chat/completions", keys * 2)  # two for each member
        _measure_all("gateway", whole, port, found)
    lines = [line for what, taken in found.items() for line in lines_of(what, taken)]
    return lines, {"affinity": {what: vars(taken) for what, taken in found.items()}}


def _measure_all(where: str, sessions: Sessions, port: int, found: dict[str, Taken]) -> None:
    for fit, factor in FIT.items():
        for balance in (*BALANCES, *reversed(BALANCES)):
            taken = found.setdefault(f"{where}, {balance}, {fit} cache", Taken())
            _measure(taken, sessions, balance, sessions.cache_tokens(factor), port)


def lines_of(what: str, taken: Taken) -> Iterator[Line]:
    rates = " · ".join(f"{rate:.1%}" for rate in taken.hit_rates)
    yield Line(f"{what}: prefix cache hit rate, each turn", rates)
    means = " · ".join(ms(mean) for mean in taken.at_engines)
    yield Line(f"{what}: first token at the engines, mean, each turn", means)
    yield Line(
        f"{what}: first token, p50 · p95", f"{ms(p50(taken.later))} · {ms(p95(taken.later))}"
    )
    yield Line(f"{what}: busiest engine to the mean", f"{max(taken.busiest):.2f}")
    whole = 1 - taken.failed / taken.asked
    yield Line(f"{what}: answered", f"{whole:.1%}", whole, 1, at_least=True)


def _measure(taken: Taken, sessions: Sessions, balance: str, cache_tokens: int, port: int) -> None:
    environment = {
        "SIM_TTFT_MS": "20",
        "SIM_TOKENS_PER_SECOND": str(SPEED),
        "SIM_PREFILL_TOKENS_PER_SECOND": str(PREFILL),
        "SIM_KV_CACHE_TOKENS": str(cache_tokens),
    }
    with (
        _engines(sessions.engines, environment) as engines,
        tempfile.TemporaryDirectory(prefix="nan-bench-") as folder,
        running(Path(folder), balance=balance, pool_bind=f"127.0.0.1:{port}") as proxy,
    ):
        into_service(proxy, [engine.port for engine in engines])
        with counted([engine.http for engine in engines], taken):
            asyncio.run(play(sessions, taken))


def into_service(proxy: Proxy, ports: Sequence[int]) -> None:
    first = Place(backend="slot01", number=1, address="127.0.0.1", port=1, want="ready")
    proxy.until_ready(*(replace(first, number=at, port=port) for at, port in enumerate(ports, 1)))


@contextmanager
def _engines(count: int, environment: dict[str, str]) -> Iterator[list[RunningEngine]]:
    with ExitStack() as started:
        yield [
            started.enter_context(engine_running("--max-model-len", "16384", **environment))
            for _ in range(count)
        ]


@contextmanager
def counted(engines: Sequence[httpx.Client], taken: Taken) -> Iterator[None]:
    """What the engines themselves say of what happens meanwhile."""
    before = [_counters(engine) for engine in engines]
    yield
    after = [_counters(engine) for engine in engines]
    rows = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    hits, asked, served, waited = (list(column) for column in zip(*rows, strict=True))
    taken.hit_rates.append(sum(hits) / sum(asked))
    taken.busiest.append(max(served) / (sum(served) / len(served)))
    taken.at_engines.append(sum(waited) / sum(served))


COUNTERS = (
    "prefix_cache_hits_total",
    "prefix_cache_queries_total",
    "time_to_first_token_seconds_count",
    "time_to_first_token_seconds_sum",
)


def _counters(engine: httpx.Client) -> list[float]:
    return [metric(engine, f"vllm:{name}") for name in COUNTERS]


async def play(sessions: Sessions, taken: Taken) -> None:
    async with httpx.AsyncClient(timeout=180, limits=httpx.Limits(max_connections=None)) as client:
        await asyncio.gather(
            *(_session(client, sessions, number, taken) for number in range(len(sessions.headers)))
        )


async def _session(
    client: httpx.AsyncClient, sessions: Sessions, number: int, taken: Taken
) -> None:
    chance, shape = sessions.chance(number), sessions.shape
    await asyncio.sleep(chance.expovariate(1 / THINK))
    shared = _words(sessions.chance(-1), shape.system)
    messages = [
        {"role": "system", "content": shared},
        {"role": "user", "content": _words(chance, shape.first)},
    ]
    for turn in range(shape.turns):
        begun = time.perf_counter()
        taken.asked += 1
        first, answer = await _turn(client, sessions, number, messages)
        if first is None:
            taken.failed += 1
        else:
            (taken.later if turn else taken.first).append(first - begun)
        messages += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": _words(chance, shape.turn)},
        ]
        await asyncio.sleep(chance.expovariate(1 / THINK))


async def _turn(
    client: httpx.AsyncClient, sessions: Sessions, number: int, messages: list[dict[str, str]]
) -> tuple[float | None, str]:
    body = {
        "model": "nan",
        "messages": messages,
        "stream": True,
        "max_tokens": sessions.shape.answer,
    }
    first, parts = None, []
    headers = sessions.headers[number]
    async with client.stream("POST", sessions.url, json=body, headers=headers) as answer:
        async for line in answer.aiter_lines():
            for part in re.findall(r'"content": ?"((?:[^"\\]|\\.)+)"', line):
                first = first or time.perf_counter()
                parts.append(part)
    return first, "".join(parts)


def _words(chance: random.Random, tokens: int) -> str:
    """Words of one token each."""
    return " ".join(f"{chance.randrange(16**5):05x}" for _ in range(tokens))
