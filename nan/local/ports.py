"""Which loopback port each part listens on, remembered between runs."""

import json
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from .state import write_atomically

USUAL: Mapping[str, int] = {
    "site": 8000,
    "web": 8001,
    "api": 8080,
    "pool": 8090,
    "engine": 8100,
    "engine2": 8101,
    "engine3": 8102,
    "gateway": 4000,
    "ops": 8404,
    "postgres": 5543,
    "valkey": 6390,
}
HOST = "127.0.0.1"


def choose(*, file: Path, free: bool = False) -> dict[str, int]:
    """A free port for every name: the one of the last run, else the usual one, else any.

    With `free`, the usual ones are left alone (a second stack beside a running one). All chosen
    ports are held until the last is found, so no two names share one. They are let go before the
    parts bind them: a stranger may still be faster, in which case the part fails and says so.
    """
    last = _read(file)
    ports: dict[str, int] = {}
    with ExitStack() as held:
        for name, usual in USUAL.items():
            wishes = [last.get(name), None if free else usual, 0]
            ports[name] = _hold(held, [wish for wish in wishes if wish is not None])
    write_atomically(file, json.dumps(ports, indent=2) + "\n")
    return ports


def remembered(file: Path) -> dict[str, int]:
    """The ports of the last run, for a shell beside it."""
    return {**USUAL, **_read(file)}


def unusual(chosen: Mapping[str, int]) -> str:
    """For people who look for a part at its usual port."""
    moved = {name: port for name, port in chosen.items() if USUAL[name] != port}
    return ", ".join(f"{name} {USUAL[name]} -> {port}" for name, port in moved.items())


def is_free(port: int) -> bool:
    with ExitStack() as held:
        return _bind(held, port) is not None


def _hold(held: ExitStack, wishes: list[int]) -> int:
    for wish in wishes:
        port = _bind(held, wish)
        if port is not None:
            return port
    raise OSError(f"no free port on {HOST}: close some programs and try again")


def _bind(held: ExitStack, port: int) -> int | None:
    """REUSEADDR passes over connections in TIME_WAIT, never over a listening socket."""
    probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind((HOST, port))
    except OSError:
        return None
    # Two bound REUSEADDR sockets may share a port until one of them listens.
    probe.listen(1)
    return int(probe.getsockname()[1])


def _read(file: Path) -> dict[str, int]:
    try:
        stored = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {name: port for name, port in stored.items() if port in range(1, 65536)}
