"""How engines are started, looked at and ended on this host: one small class per way.

A driver does what it is told, once; when to send which signal is `inference.gpu.engines`' matter.
"""

from dataclasses import dataclass, field
from typing import Protocol

from inference.gpu.host import Host
from inference.gpu.state import HostState, Record


class DriverError(Exception):
    """The host's own machinery failed (systemd, Docker); the message says what it answered."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """`secrets` reach the engine's environment by ways that leave no copy in a file or argv."""

    command: list[str]
    environment: dict[str, str]
    secrets: dict[str, str] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """`main`: the engine's own process lives. `left`: processes of it that live, `main` among
    them. `pids`: theirs, as the GPU knows them. `ended_at`, `exit_code`: None when unknown."""

    main: bool
    left: int
    pids: frozenset[int]
    exit_code: int | None = None
    ended_at: float | None = None


NOTHING = Seen(main=False, left=0, pids=frozenset())


class Driver(Protocol):
    def start(self, record: Record, launch: Launch) -> None:
        """Returns when the host has taken it over. Raises DriverError if it has not."""

    def look(self, record: Record) -> Seen:
        """May add to `record.seen`."""

    def terminate(self, record: Record) -> None:
        """SIGTERM to the engine's main process: its children are its own matter."""

    def kill(self, record: Record) -> None:
        """SIGKILL to every process of this engine, and to no other."""

    def collect_logs(self, record: Record) -> None:
        """Brings stdout.log and stderr.log up to date where the engine doesn't write them."""

    def forget(self, record: Record) -> None:
        """Removes what the host's machinery still holds of an engine that is over."""


def choose(host: Host) -> Driver:
    from inference.gpu.drivers.compose import ComposeDriver
    from inference.gpu.drivers.process import ProcessDriver
    from inference.gpu.drivers.systemd import SystemdDriver

    state = HostState(host.state)
    if host.driver == "systemd":
        return SystemdDriver(state)
    if host.driver == "compose":
        return ComposeDriver(host, state)
    return ProcessDriver(state)
