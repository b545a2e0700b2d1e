"""The only client of HAProxy's runtime API, over its unix socket. Knows nothing of our rows.

Whoever reaches that socket is admin of the proxy, and HAProxy obeys whatever follows a `;` or a
newline; it also takes `port 99999` without a word and makes another number of it. So every value
is checked here before anything is sent, and callers read back what they set.

https://docs.haproxy.org/2.8/management.html#9.3
"""

import ipaddress
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from inference.pool_answers import (
    Key,
    Server,
    Snapshot,
    Worker,
    read_map,
    read_snapshot,
    read_workers,
)
from inference.pool_state import render, worker_of

SLOTS = tuple(f"slot{number:02}" for number in range(1, 9))
PLACES = 32
LONGEST_LINE = 8_000  # bytes; HAProxy reads a line into a buffer of 16 kB
LONGEST_ANSWER = 8_000_000
LOOK = "show info;show servers state;show stat -1 6 -1;show waiting"

_NAME = re.compile(r"[a-z0-9-]{1,40}", re.ASCII)
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}", re.ASCII)
_SINCE = re.compile(r"since [0-2]\d:[0-5]\d( [A-Z]{1,5})?", re.ASCII)
_FOLDER = re.compile(r"/[A-Za-z0-9._/+@=-]*", re.ASCII)
# What HAProxy says of an address that it took; anything else is a complaint.
_SAID_OF_ADDRESSES = ("no need to change", "IP changed", "port changed")

State = Literal["ready", "drain", "maint"]
Idle = Literal["out", "failed"]


class PoolUnavailable(Exception):
    """HAProxy did not answer, or not as HAProxy does. Passing: try again with the next pass.

    Codes: missing (no socket), unreachable, timeout, unreadable, not_applied.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class InvalidValue(ValueError):
    """A value that must not reach HAProxy. Nothing was sent."""


def check_place(backend: str, number: int) -> None:
    if backend not in SLOTS:
        raise InvalidValue(f"backend must be one of {SLOTS[0]} to {SLOTS[-1]}, not {backend!r}")
    _check_number("number", number, PLACES)


def check_address(address: str, port: int) -> None:
    """An IP address that a server can have; never a name, which HAProxy would not resolve."""
    try:
        found = ipaddress.ip_address(address if isinstance(address, str) else "")
    except ValueError:
        raise InvalidValue(f"address must be an IP address, not {address!r}") from None
    # A zone (fe80::1%…) may hold any text.
    if "%" in address or found.is_unspecified or found.is_multicast:
        raise InvalidValue(f"address must be one of a single host, not {address!r}")
    _check_number("port", port, 65_535)


def check_limit(maxconn: int) -> None:
    _check_number("maxconn", maxconn, 4_096)


def _check_number(name: str, value: int, largest: int) -> None:
    if type(value) is not int or not 1 <= value <= largest:
        raise InvalidValue(f"{name} must be a whole number from 1 to {largest}, not {value!r}")


def _check_text(what: str, value: str, pattern: re.Pattern[str]) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise InvalidValue(f"{what} can't be {value!r}")


@dataclass(frozen=True)
class Command:
    """One line's worth for HAProxy, made by the functions below from checked values only."""

    text: str


def set_state(key: Key, state: State) -> Command:
    check_place(*key)
    if state not in ("ready", "drain", "maint"):
        raise InvalidValue(f"state can't be {state!r}")
    return Command(f"set server {_place(key)} state {state}")


def set_address(key: Key, address: str, port: int) -> Command:
    check_place(*key)
    check_address(address, port)
    return Command(f"set server {_place(key)} addr {address} port {port}")


def set_limit(key: Key, maxconn: int) -> Command:
    check_place(*key)
    check_limit(maxconn)
    return Command(f"set maxconn server {_place(key)} {maxconn}")


def _place(key: Key) -> str:
    return f"{key[0]}/r{key[1]}"


class Pool:
    """`run_dir` holds HAProxy's sockets, maps and state file. `timeout`: seconds for an answer."""

    def __init__(self, run_dir: Path, *, timeout: float = 1.0) -> None:
        if not _FOLDER.fullmatch(str(run_dir)):
            raise InvalidValue(f"run_dir must be an absolute path without blanks, not {run_dir}")
        self.run_dir = run_dir
        self._timeout = timeout

    # ---- reading

    def look(self) -> Snapshot:
        """What HAProxy knows of all places and queues, in one round trip."""
        answer = self._ask("admin.sock", LOOK)
        try:
            return read_snapshot(answer, SLOTS)
        except (ValueError, KeyError, IndexError):
            raise PoolUnavailable("unreadable") from None

    def left_sessions(self) -> Mapping[tuple[Key, str], int]:
        """Sessions on workers from before a reload, by place and HOST:PORT.

        The worker that answers the admin socket does not count them; the master reaches the
        others. Empty where there is no master socket.
        """
        found: dict[tuple[Key, str], int] = {}
        for pid in self._old_workers():
            for key, server in self._old_look(pid).items():
                if server.sessions:
                    place = (key, server.target)
                    found[place] = found.get(place, 0) + server.sessions
        return found

    def _old_look(self, pid: int) -> Mapping[Key, Server]:
        answer = self._ask("master.sock", ";".join(f"@!{pid} {part}" for part in LOOK.split(";")))
        try:
            return read_snapshot(answer, SLOTS).servers
        except (ValueError, KeyError, IndexError):
            return {}  # it ended in between

    def _old_workers(self) -> list[int]:
        if not (self.run_dir / "master.sock").exists():
            return []
        return read_workers(self._ask("master.sock", "show proc"))

    # ---- places

    def apply(self, commands: Sequence[Command]) -> list[str]:
        """Send all, many on a line. Returns HAProxy's complaints; what took, the next look says."""
        complaints: list[str] = []
        for line in _lines(command.text for command in commands):
            said = self._ask("admin.sock", line).splitlines()
            complaints += [
                text for text in said if text and not text.startswith(_SAID_OF_ADDRESSES)
            ]
        return complaints

    def cut(self, backend: str, number: int) -> int:
        """End all requests of this place at once, also those on workers from before a reload.

        Says how many there were.
        """
        check_place(backend, number)
        server = self.look().servers.get((backend, number))
        self.apply([Command(f"shutdown sessions server {backend}/r{number}")])
        old = sum(self._cut_old(pid, backend, number) for pid in self._old_workers())
        return (server.sessions if server else 0) + old

    def _cut_old(self, pid: int, backend: str, number: int) -> int:
        """There the proxy is disabled and `shutdown sessions` refused; single sessions go."""
        listed = self._ask("master.sock", f"@!{pid} show sess")
        named = re.compile(rf"^(0x[0-9a-f]+): .*\bbe={backend} srv=r{number} ", re.MULTILINE)
        ends = [f"@!{pid} shutdown session {found}" for found in named.findall(listed)]
        for line in _lines(ends):
            self._ask("master.sock", line)
        return len(ends)

    # ---- the state file

    def saved_worker(self) -> Worker | None:
        """Whose state the file holds; None if there is no file or it isn't ours."""
        return worker_of(self._read("server-state"))

    def save_state(
        self, seen: Snapshot | None = None, *, lowered: Mapping[Key, State] | None = None
    ) -> bool:
        """Write what HAProxy is to find when it starts again, or is reloaded.

        `lowered`: places about to be taken out, written as if they were already, so that a crash
        in between can't bring one back. Without space for a new file the old one is removed: then
        a start begins with nothing in service, which the next passes mend. False says so.
        """
        content = render(seen or self.look(), lowered or {})
        if self._read("server-state") == content:
            return True
        try:
            self._write("server-state", content)
        except OSError:
            with suppress(OSError):
                (self.run_dir / "server-state").unlink(missing_ok=True)
            return False
        return True

    # ---- names

    def set_names(self, slots: Mapping[str, str]) -> bool:
        """Which slot answers under /NAME/v1/. True if that changed anything."""
        for name, slot in slots.items():
            _check_text("a name in the pool", name, _NAME)
            check_place(slot, 1)
        return self._set_map("slots.map", slots)

    def set_retired(self, successors: Mapping[str, str]) -> bool:
        """Old model names and what to call in their place; the API's error tells."""
        for old, new in successors.items():
            _check_text("a model's name", old, _MODEL)
            _check_text("a model's name", new, _MODEL)
        return self._set_map("retired.map", successors)

    def set_rotation(self, slots: Mapping[str, str]) -> bool:
        """Slots whose model is being replaced, since when ("since 14:05 UTC")."""
        for slot, since in slots.items():
            check_place(slot, 1)
            _check_text("the beginning of a rotation", since, _SINCE)
        return self._set_map("rotations.map", slots)

    def set_idle(self, slots: Mapping[str, Idle]) -> bool:
        """Slots to which no engine is coming, so that nobody waits for one; "out" is told so."""
        for slot, why in slots.items():
            check_place(slot, 1)
            if why not in get_args(Idle):
                raise InvalidValue(f"a slot can't be idle because of {why!r}")
        return self._set_map("idle.map", slots)

    def _set_map(self, name: str, wanted: Mapping[str, str]) -> bool:
        """The file first: HAProxy forgets at a restart what it was only told."""
        content = "".join(f"{key} {value}\n" for key, value in sorted(wanted.items()))
        changed = self._read(name) != content
        if changed:
            try:
                self._write(name, content)
            except OSError:
                raise PoolUnavailable("not_applied") from None
        path = self.run_dir / name
        found = read_map(self._ask("admin.sock", f"show map {path}"))
        if found == wanted:
            return changed
        self.apply([Command(text) for text in _map_commands(path, found, wanted)])
        if read_map(self._ask("admin.sock", f"show map {path}")) != wanted:
            raise PoolUnavailable("not_applied")
        return True

    # ---- files and sockets

    def _read(self, name: str) -> str:
        try:
            return (self.run_dir / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _write(self, name: str, content: str) -> None:
        """Replaced at once: a start never reads half a file."""
        fresh = self.run_dir / f"{name}.new"
        fresh.write_text(content, encoding="utf-8")
        fresh.replace(self.run_dir / name)

    def _ask(self, name: str, line: str) -> str:
        """One line, one answer: HAProxy closes after it. The deadline is for all of it."""
        deadline = time.monotonic() + self._timeout
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(self._timeout)
                client.connect(str(self.run_dir / name))
                client.sendall(line.encode("ascii") + b"\n")
                client.shutdown(socket.SHUT_WR)
                return b"".join(_received(client, deadline)).decode("utf-8", errors="replace")
        except FileNotFoundError:
            raise PoolUnavailable("missing") from None
        except TimeoutError:
            raise PoolUnavailable("timeout") from None
        except OSError:
            raise PoolUnavailable("unreachable") from None


def _received(client: socket.socket, deadline: float) -> Iterator[bytes]:
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        client.settimeout(left)
        part = client.recv(262_144)
        if not part:
            return
        size += len(part)
        if size > LONGEST_ANSWER:
            raise PoolUnavailable("unreadable")
        yield part


def _lines(commands: Iterable[str]) -> Iterator[str]:
    line = ""
    for command in commands:
        if line and len(line) + len(command) >= LONGEST_LINE:
            yield line
            line = ""
        line = f"{line};{command}" if line else command
    if line:
        yield line


def _map_commands(path: Path, found: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    """Additions first, so that no name is missing for a moment."""
    for key, value in wanted.items():
        if found.get(key) != value:
            verb = "set" if key in found else "add"
            yield f"{verb} map {path} {key} {value.replace(' ', chr(92) + ' ')}"
    for key in found.keys() - wanted.keys():
        if re.fullmatch(r"[!-:<-\[\]-~]+", key):  # hand-made entries may hold anything else
            yield f"del map {path} {key}"
