"""Celery's workers as parts: each says by a file of its own that it takes tasks."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from . import ready
from .config import ROOT, Stack
from .part import Part

YIELDING = ("nice", "-n", "5")
"""Gives way to what answers members: a swap's rounds would else make their first tokens late."""


def worker(
    stack: Stack,
    name: str,
    *,
    threads: int,
    env: dict[str, str],
    queue: str = "",
    after: tuple[str, ...] = ("migrate", "valkey"),
    stop_seconds: float = 35,  # tasks end within 30 s, but for a probe's longest prompt
    yields: bool = False,
) -> Part:
    """Without mingle and gossip, which wait for other workers at the start. Its queue is called
    like itself if none is named."""
    queue = queue or name
    note = stack.state_dir / "run" / f"worker-{name}.ready"
    return Part(
        name=f"worker-{name}",
        argv=[
            *(YIELDING if yields else ()),
            *(sys.executable, "-m", "celery", "-A", "nan", "worker", "-Q", queue),
            *("-P", "threads", "-c", str(threads), "-n", f"{queue}@%h", "-l", "WARNING"),
            *("-I", "nan.local.announce", "--without-mingle", "--without-gossip"),
        ],
        env={**env, "NAN_READY_FILE": str(note)},
        after=after,
        prepare=fresh(note),
        ready=partial(ready.written, note),
        stop_seconds=stop_seconds,
        cwd=ROOT,
    )


def fresh(file: Path, *, touch: bool = False) -> Callable[[], None]:
    def renew() -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        if touch:
            file.touch()

    return renew
