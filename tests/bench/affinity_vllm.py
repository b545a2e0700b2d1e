"""leastconn against affinity over real vLLM on the CPU: two engines with a small real model.

The engines stay for all turns; each turn has sessions of its own, so that it finds nothing of the
one before in their caches. Needs what `make test-vllm` installs, and a quiet machine: the two
engines share its cores. Alone: python -m tests.bench --only affinity-vllm
"""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.bench.affinity import (
    BALANCES,
    Sessions,
    Shape,
    Taken,
    counted,
    into_service,
    lines_of,
    play,
)
from tests.bench.report import Line
from tests.contract import contenders
from tests.inference.pool.proxy import CHAT, running
from tests.ports import free_port

MODEL = "nan-local/smollm2-135m-instruct"
SHAPE = Shape(turns=5, system=60, first=120, turn=40, answer=8)
"""A word is three to four tokens to this model."""
SESSIONS = 6
ROOM = ("--max-model-len", "4096", "--kv-cache-memory-bytes", "512M", "--served-model-name", "nan")


def measure() -> tuple[list[Line], dict[str, Any]]:
    found = {f"real vLLM, {balance}": Taken() for balance in BALANCES}
    port = free_port()
    headers = [
        {"x-affinity": f"session-{number}", "authorization": f"Bearer {contenders.KEY}"}
        for number in range(SESSIONS)
    ]
    with tempfile.TemporaryDirectory(prefix="nan-bench-") as folder, _engines(folder) as engines:
        for seed, balance in enumerate((*BALANCES, *reversed(BALANCES)), start=1):
            url = f"http://127.0.0.1:{port}{CHAT}"
            sessions = Sessions(len(engines), url, headers, SHAPE, seed)
            _measure(found[f"real vLLM, {balance}"], sessions, balance, engines)
    lines = [line for what, taken in found.items() for line in lines_of(what, taken)]
    return lines, {"affinity_vllm": {what: vars(taken) for what, taken in found.items()}}


def _measure(
    taken: Taken, sessions: Sessions, balance: str, engines: list[contenders.Running]
) -> None:
    bind = sessions.url.removeprefix("http://").removesuffix(CHAT)
    with (
        tempfile.TemporaryDirectory(prefix="nan-bench-") as folder,
        running(Path(folder), balance=balance, pool_bind=bind) as proxy,
    ):
        into_service(proxy, [engine.port for engine in engines])
        with counted([engine.http for engine in engines], taken):
            asyncio.run(play(sessions, taken))


@contextmanager
def _engines(folder: str) -> Iterator[list[contenders.Running]]:
    contender = contenders.vllm()
    if not Path(contender.command[0]).exists():
        raise SystemExit("vLLM is not installed here: make test-vllm does that.")
    with ExitStack() as started:
        engines = [
            started.enter_context(contender.start(*ROOM, model=MODEL, folder=Path(folder)))
            for _ in range(2)
        ]
        yield [engine.wait_healthy() for engine in engines]
