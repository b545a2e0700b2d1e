"""`python -m nan.local` with small children in place of the real parts.

python -m tests.local.small_stack SCENARIO run --state-dir DIR
"""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from nan.local import __main__ as command
from nan.local import parts, ready
from nan.local.config import Stack
from nan.local.part import Part

CHILD = Path(__file__).with_name("child.py")


def child(stack: Stack, name: str, *flags: str, after: tuple[str, ...] = (), **more: Any) -> Part:
    folder = stack.state_dir / "children"
    folder.mkdir(exist_ok=True)
    note = folder / f"{name}.ready"
    job = "--job" in flags
    return Part(
        name=name,
        argv=[sys.executable, str(CHILD), name, str(folder), *flags],
        env={"PATH": os.environ["PATH"]},
        after=after,
        job=job,
        prepare=lambda: note.unlink(missing_ok=True),
        ready=None if job else partial(ready.written, note),
        **more,
    )


def chain(stack: Stack) -> list[Part]:
    return [
        child(stack, "third", after=("second",)),
        child(stack, "second", "--spawn", after=("first",)),
        child(stack, "first"),
    ]


def through_a_job(stack: Stack) -> list[Part]:
    return [
        child(stack, "database"),
        child(stack, "migrate", "--job", after=("database",)),
        child(stack, "web", after=("migrate",)),
    ]


def deaf(stack: Stack) -> list[Part]:
    return [child(stack, "deaf", "--deaf", stop_seconds=float(os.environ.get("DEAF_SECONDS", 1)))]


def broken(stack: Stack) -> list[Part]:
    return [
        child(stack, "fine"),
        child(stack, "broken", "--die", after=("fine",), remedy="buy a disk"),
    ]


def private(stack: Stack) -> list[Part]:
    return [child(stack, "first-admin", "--job", private_output=True)]


if __name__ == "__main__":
    parts.all_parts = globals()[sys.argv.pop(1)]
    sys.exit(command.main())
