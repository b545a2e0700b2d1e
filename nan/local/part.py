"""What the supervisor needs to know of one part."""

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Part:
    """A service that keeps running, or (`job`) a command that has to succeed once per start.

    `after` names parts that must be ready before this one starts; they are stopped after it.
    `prepare` runs before every start of the process, also of a restart. `ready` is asked until it
    answers True; raising means *not yet*. A job is ready when it has ended with 0.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    after: tuple[str, ...] = ()
    job: bool = False
    # A job's output that must reach one pair of eyes only: kept in memory, never in a log.
    private_output: bool = False
    prepare: Callable[[], object] | None = field(default=None, repr=False)
    ready: Callable[[], bool] | None = field(default=None, repr=False)
    ready_seconds: float = 60
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10
    user: str | None = None
    cwd: Path | None = None
    port: int | None = None
    url: str | None = None
    remedy: str = ""


def in_order(parts: Sequence[Part]) -> list[Part]:
    """Each part after those that it needs; otherwise as given. A circle is a mistake of ours."""
    known = {part.name: part for part in parts}
    placed: dict[str, Part] = {}

    def place(part: Part, path: tuple[str, ...]) -> None:
        if part.name in path:
            raise ValueError(f"parts wait for each other: {' -> '.join((*path, part.name))}")
        for name in part.after:
            if name in known and name not in placed:
                place(known[name], (*path, part.name))
        placed.setdefault(part.name, part)

    for part in parts:
        place(part, ())
    return list(placed.values())


def all_needs(parts: Sequence[Part]) -> dict[str, set[str]]:
    """For each part, what it needs, also by way of others: `web` needs Postgres through a job."""
    needs: dict[str, set[str]] = {}
    for part in in_order(parts):
        direct = set(part.after)
        needs[part.name] = direct.union(*(needs.get(name, set()) for name in direct))
    return needs


def with_needs(parts: Sequence[Part], names: Sequence[str]) -> list[Part]:
    """The named parts and everything that they need, in order."""
    known = {part.name: part for part in parts}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise LookupError(f"no part is called {', '.join(unknown)}; there are: {', '.join(known)}")
    wanted: set[str] = set()

    def want(name: str) -> None:
        if name in known and name not in wanted:
            wanted.add(name)
            for need in known[name].after:
                want(need)

    for name in names:
        want(name)
    return [part for part in in_order(parts) if part.name in wanted]
