"""Brings HAProxy's places to what the rows want, one small step a pass, and says what it saw.

A place goes into service over several passes: address while it is out (maint), then drain, in
which HAProxy checks its health, then ready once the status is exactly DRAIN. HAProxy would take a
server made ready straight from maint for up at once, without a check.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import structlog

from inference import pool as haproxy
from inference.pool import Command, InvalidValue, Pool, PoolUnavailable, State
from inference.pool_answers import Key, Server, Snapshot

Want = Literal["ready", "drain", "out"]

log = structlog.get_logger(__name__)

MISSING = "MISSING"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an engine is to stand in the pool. Holds only values that may reach HAProxy.

    `drain` takes no new requests and is checked all the time; `out` is not even checked.
    """

    backend: str
    number: int
    address: str
    port: int
    want: Want
    maxconn: int = 64

    def __post_init__(self) -> None:
        haproxy.check_place(self.backend, self.number)
        haproxy.check_address(self.address, self.port)
        haproxy.check_limit(self.maxconn)
        if self.want not in get_args(Want):
            raise InvalidValue(f"want can't be {self.want!r}")

    @property
    def key(self) -> Key:
        return self.backend, self.number


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One place after the pass.

    `in_service`: new requests go there. `proven`: its health check passes, at the wanted address.
    `sessions`: requests running there, also on HAProxy's workers from before a reload.
    `changed`: what this pass did ("address", "drain", "ready", "maint", "maxconn"). `status` is
    HAProxy's word, or MISSING where its file has no such place.
    """

    in_service: bool
    proven: bool
    status: str
    sessions: int
    changed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PoolView:
    """`restarted`: HAProxy was started or reloaded since the last pass. `saved`: the state file
    holds what is true now; if not, a restart begins with nothing in service."""

    places: Mapping[Key, Seen]
    queued: Mapping[str, int]
    restarted: bool
    saved: bool


@dataclass(frozen=True)
class _Step:
    name: str
    command: Command


def reconcile(pool: Pool, wanted: Sequence[Place]) -> PoolView:
    """One pass: everything not wanted goes out, everything wanted one step further.

    Any number of passes in any order of crashes is safe. Takes a few round trips and never waits
    for a state; raises PoolUnavailable.
    """
    plan = {place.key: place for place in wanted}
    if len(plan) < len(wanted):
        raise InvalidValue("two engines are wanted at one place")
    before = pool.look()
    known = pool.saved_worker()
    steps = _all_steps(before, plan)
    after = before
    if steps:
        # Before the commands: a crash after them must not bring back what they took out.
        pool.save_state(before, lowered=_lowered(steps))
        complaints = pool.apply([step.command for taken in steps.values() for step in taken])
        if complaints:
            log.warning("pool.complaints", said=complaints[:5], number=len(complaints))
        after = pool.look()
    saved = pool.save_state(after)
    if not saved:
        log.error("pool.state_not_saved", folder=str(pool.run_dir))
    return PoolView(
        places=_view(after, plan, steps, _left(pool)),
        queued=after.queued,
        restarted=known is not None and known != before.worker,
        saved=saved,
    )


def _all_steps(seen: Snapshot, plan: Mapping[Key, Place]) -> dict[Key, list[_Step]]:
    found = {key: _steps(server, plan.get(key), key) for key, server in seen.servers.items()}
    return {key: steps for key, steps in found.items() if steps}


def _steps(server: Server, place: Place | None, key: Key) -> list[_Step]:
    if place is None or place.want == "out":
        return [] if server.admin == "maint" else [_state(key, "maint")]
    steps = []
    if (server.address, server.port) != (place.address, place.port):
        if server.admin != "maint":
            steps.append(_state(key, "maint"))
        steps.append(_Step("address", haproxy.set_address(key, place.address, place.port)))
        steps.append(_state(key, "drain"))
    elif server.admin == "maint" or (server.admin == "ready" and place.want == "drain"):
        steps.append(_state(key, "drain"))
    elif server.admin == "drain" and place.want == "ready" and server.proven:
        steps.append(_state(key, "ready"))
    if server.maxconn != place.maxconn:
        steps.append(_Step("maxconn", haproxy.set_limit(key, place.maxconn)))
    return steps


def _state(key: Key, state: State) -> _Step:
    return _Step(state, haproxy.set_state(key, state))


def _lowered(steps: Mapping[Key, list[_Step]]) -> dict[Key, State]:
    lowered: dict[Key, State] = {}
    for key, taken in steps.items():
        names = {step.name for step in taken}
        if names & {"maint", "address"}:
            lowered[key] = "maint"
        elif "drain" in names:
            lowered[key] = "drain"
    return lowered


def _left(pool: Pool) -> Mapping[tuple[Key, str], int]:
    try:
        return pool.left_sessions()
    except PoolUnavailable as error:
        log.warning("pool.master_unavailable", code=error.code)
        return {}


def _view(
    after: Snapshot,
    plan: Mapping[Key, Place],
    steps: Mapping[Key, list[_Step]],
    left: Mapping[tuple[Key, str], int],
) -> dict[Key, Seen]:
    """What is wanted, and what else was moved or is still busy."""
    places = {key: _missing() for key in plan}
    for key, server in after.servers.items():
        changed = tuple(step.name for step in steps.get(key, ()))
        sessions = server.sessions + left.get((key, server.target), 0)
        if key in plan or changed or sessions:
            places[key] = _seen(server, plan.get(key), sessions, changed)
    return places


def _seen(server: Server, place: Place | None, sessions: int, changed: tuple[str, ...]) -> Seen:
    here = place is not None and (server.address, server.port) == (place.address, place.port)
    return Seen(
        in_service=server.up,
        proven=here and server.proven,
        status=server.status,
        sessions=sessions,
        changed=changed,
    )


def _missing() -> Seen:
    return Seen(in_service=False, proven=False, status=MISSING, sessions=0, changed=())
