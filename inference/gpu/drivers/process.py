"""Engines as processes of this user, each in a session of its own: one machine, and tests."""

import subprocess
import sys
import time
from pathlib import Path
from signal import SIGKILL, SIGTERM

from inference.gpu import keeper, processes, programs
from inference.gpu.drivers import NOTHING, DriverError, Launch, Seen
from inference.gpu.processes import MARKER, Identity
from inference.gpu.state import HostState, Record, read_identity, read_json, take_claim

KEEPER = Path(keeper.__file__)
# A keeper that has not made its claim after this long never will: see `take_claim`.
CLAIM_SECONDS = 20


class ProcessDriver:
    def __init__(self, state: HostState) -> None:
        self._state = state

    def start(self, record: Record, launch: Launch) -> None:
        folder = self._state.engine(record.instance)
        marker = {MARKER: self._state.marker(record.instance)}
        environment = {**launch.environment, **launch.secrets, **marker}
        command = [sys.executable, "-I", str(KEEPER), "fork", str(folder), *launch.command]
        try:
            programs.carry_out(
                command,
                environment=environment,
                seconds=10,
                folder=folder,
                output=subprocess.DEVNULL,
            ).check_returncode()
        except (OSError, subprocess.SubprocessError) as error:
            raise DriverError(
                f"The engine's keeper did not start: {type(error).__name__}"
            ) from None

    def look(self, record: Record) -> Seen:
        folder = self._state.engine(record.instance)
        keeper_id = read_identity(folder / "keeper.json")
        if record.boot != processes.boot():
            return NOTHING
        if keeper_id is None:
            return self._before_the_claim(record)
        own = self._family(record, keeper_id)
        engine = read_identity(folder / "engine.json")
        ended = read_json(folder / "exit.json") or {}
        alive = engine in own or keeper_id in own  # the keeper is about to note the exit
        record.seen = sorted(own)
        others = own - {keeper_id}
        return Seen(
            main=alive and not ended,
            left=len(others),
            pids=frozenset(pid for pid, _ in others),
            exit_code=ended.get("code"),
            ended_at=ended.get("at"),
        )

    def terminate(self, record: Record) -> None:
        folder = self._state.engine(record.instance)
        take_claim(folder)
        if engine := read_identity(folder / "engine.json"):
            processes.send(engine, SIGTERM)

    def kill(self, record: Record) -> None:
        """The keeper stays: it notes the exit and ends by itself. Again while they fork."""
        folder = self._state.engine(record.instance)
        take_claim(folder)
        keeper_id = read_identity(folder / "keeper.json")
        for _ in range(20):
            own = self._family(record, keeper_id) - {keeper_id}
            if not own:
                return
            for identity in own:
                processes.send(identity, SIGKILL)
            time.sleep(0.02)

    def collect_logs(self, record: Record) -> None:
        """The engine writes them itself."""

    def forget(self, record: Record) -> None:
        """Nothing outside the instance's folder."""

    def _family(self, record: Record, keeper_id: Identity | None) -> set[Identity]:
        marker = self._state.marker(record.instance)
        return processes.family(keeper_id, marker=marker, seen=record.seen)

    def _before_the_claim(self, record: Record) -> Seen:
        folder = self._state.engine(record.instance)
        if time.time() - record.asked_at > CLAIM_SECONDS:
            take_claim(folder)
        if (folder / "keeper.json").exists() and not read_identity(folder / "keeper.json"):
            return NOTHING
        return Seen(main=True, left=0, pids=frozenset())
