"""leastconn against consistent-hash affinity: agents' sessions over four simulated engines.

A session is an agent at work: every turn sends all that was said before plus a tool's result, so
the engine that served the last turn has nearly all of the prompt in its prefix cache. Behind a real
HAProxy (pool only) with each balance in turn, the same sessions from the same seed. The simulated
engines need time for what their cache lacks, and their caches hold FIT times what one engine's
share of the sessions needs. Alone: python -m tests.bench --only affinity
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
from tests.bench.report import Line, ms, p50, p95
from tests.inference.pool.proxy import CHAT, running
from tests.inference.simulator.engines import RunningEngine
from tests.inference.simulator.engines import running as engine_running

ENGINES, SESSIONS, TURNS = 4, 16, 10
SYSTEM_TOKENS, FIRST_TOKENS, TURN_TOKENS, ANSWER_TOKENS = 1_000, 2_000, 600, 24
PREFILL = 8_000  # tokens per second, as an engine of 35B parameters with 3B active on one GPU
SPEED = 60  # tokens per second of an answer
THINK = 0.4  # mean seconds between turns: a tool at work
LONGEST = SYSTEM_TOKENS + FIRST_TOKENS + TURNS * (TURN_TOKENS + ANSWER_TOKENS)
FIT = {"roomy": 1.5, "tight": 0.75}
BALANCES = ("leastconn", "affinity")


@dataclass
class Taken:
    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    failed: int = 0
    hit_rate: float = 0.0
    busiest: float = 0.0
    """Requests of the busiest engine to the mean of all."""


def measure() -> tuple[list[Line], dict[str, Any]]:
    lines, details = [], {}
    for fit, factor in FIT.items():
        for balance in BALANCES:
            taken = _measure(balance, int(factor * SESSIONS * LONGEST / ENGINES))
            what = f"{balance}, {fit} cache"
            lines += _lines(what, taken)
            details[what] = vars(taken)
    return lines, {"affinity": details}


def _lines(what: str, taken: Taken) -> Iterator[Line]:
    yield Line(f"{what}: prefix cache hit rate", f"{taken.hit_rate:.1%}")
    yield Line(
        f"{what}: first token, p50 · p95", f"{ms(p50(taken.later))} · {ms(p95(taken.later))}"
    )
    yield Line(f"{what}: busiest engine to the mean", f"{taken.busiest:.2f}")
    whole = 1 - taken.failed / (SESSIONS * TURNS)
    yield Line(f"{what}: answered", f"{whole:.1%}", whole, 1, at_least=True)


def _measure(balance: str, cache_tokens: int) -> Taken:
    environment = {
        "SIM_TTFT_MS": "20",
        "SIM_TOKENS_PER_SECOND": str(SPEED),
        "SIM_PREFILL_TOKENS_PER_SECOND": str(PREFILL),
        "SIM_KV_CACHE_TOKENS": str(cache_tokens),
    }
    with (
        _engines(environment) as engines,
        tempfile.TemporaryDirectory(prefix="nan-bench-") as folder,
    ):
        with running(Path(folder), balance=balance) as proxy:
            first = Place(backend="slot01", number=1, address="127.0.0.1", port=1, want="ready")
            proxy.until_ready(
                *(
                    replace(first, number=at, port=engine.port)
                    for at, engine in enumerate(engines, 1)
                )
            )
            taken = asyncio.run(_sessions(f"http://127.0.0.1:{proxy.port}{CHAT}"))
        _count(taken, engines)
    return taken


@contextmanager
def _engines(environment: dict[str, str]) -> Iterator[list[RunningEngine]]:
    with ExitStack() as started:
        yield [
            started.enter_context(engine_running("--max-model-len", "16384", **environment))
            for _ in range(ENGINES)
        ]


def _count(taken: Taken, engines: Sequence[RunningEngine]) -> None:
    def of_each(name: str) -> list[float]:
        return [engine.metric(f"vllm:{name}") for engine in engines]

    hits, asked = of_each("prefix_cache_hits_total"), of_each("prefix_cache_queries_total")
    served = of_each("time_to_first_token_seconds_count")
    taken.hit_rate = sum(hits) / sum(asked)
    taken.busiest = max(served) / (sum(served) / len(served))


async def _sessions(url: str) -> Taken:
    taken = Taken()
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client:
        await asyncio.gather(*(_session(client, url, number, taken) for number in range(SESSIONS)))
    return taken


async def _session(client: httpx.AsyncClient, url: str, number: int, taken: Taken) -> None:
    chance = random.Random(number)
    await asyncio.sleep(chance.expovariate(1 / THINK))
    shared = _words(random.Random(-1), SYSTEM_TOKENS)
    messages = [
        {"role": "system", "content": shared},
        {"role": "user", "content": _words(chance, FIRST_TOKENS)},
    ]
    for turn in range(TURNS):
        begun = time.perf_counter()
        first, answer = await _turn(client, url, number, messages)
        if first is None:
            taken.failed += 1
        else:
            (taken.later if turn else taken.first).append(first - begun)
        messages += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": _words(chance, TURN_TOKENS)},
        ]
        await asyncio.sleep(chance.expovariate(1 / THINK))


async def _turn(
    client: httpx.AsyncClient, url: str, number: int, messages: list[dict[str, str]]
) -> tuple[float | None, str]:
    body = {
        "model": "nan",
        "messages": messages,
        "stream": True,
        "max_tokens": ANSWER_TOKENS,
    }
    first, parts = None, []
    headers = {"x-affinity": f"session-{number}"}
    async with client.stream("POST", url, json=body, headers=headers) as answer:
        async for line in answer.aiter_lines():
            for part in re.findall(r'"content": ?"((?:[^"\\]|\\.)+)"', line):
                first = first or time.perf_counter()
                parts.append(part)
    return first, "".join(parts)


def _words(chance: random.Random, tokens: int) -> str:
    """Words of one token each."""
    return " ".join(f"{chance.randrange(16**5):05x}" for _ in range(tokens))
