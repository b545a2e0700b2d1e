"""Engines as systemd units `nan-engine@INSTANCE.service`: each in a cgroup of its own.

The template unit and the polkit rule that lets the worker's user manage these units, and no
others, come from deploy/engine/systemd (`python -m inference.gpu units`). An instance's command
and environment lie in its folder as launch.json; the key comes from the host's environment file,
which systemd reads.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from inference.gpu import PROJECT, processes, programs
from inference.gpu.drivers import DriverError, Launch, Seen
from inference.gpu.state import HostState, Record, read_json, take_claim, write_atomically

CGROUPS = Path("/sys/fs/cgroup")
SHOWN = ("ActiveState", "MainPID", "ControlGroup", "ExecMainCode", "ExecMainStatus")


class SystemdDriver:
    def __init__(self, state: HostState) -> None:
        self._state = state

    def start(self, record: Record, launch: Launch) -> None:
        folder = self._state.engine(record.instance)
        content = {"command": launch.command, "environment": launch.environment}
        write_atomically(folder / "launch.json", json.dumps(content))
        self._call("start", unit_name(record))

    def look(self, record: Record) -> Seen:
        """https://www.freedesktop.org/software/systemd/man/latest/systemctl.html#show"""
        answer = self._call("show", unit_name(record), f"--property={','.join(SHOWN)}")
        found = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
        folder = self._state.engine(record.instance)
        ended = read_json(folder / "exit.json") or {}
        pids = _members(found.get("ControlGroup", ""))
        state = found.get("ActiveState", "inactive")
        running = found.get("MainPID", "0") != "0" or (state == "deactivating" and not pids)
        if state in ("inactive", "failed") and not pids:
            take_claim(folder)  # a start that is still on its way comes too late
            running = False
        return Seen(
            main=running,
            left=len(pids),
            pids=pids,
            exit_code=_exit_code(found, ended),
            ended_at=ended.get("at"),
        )

    def terminate(self, record: Record) -> None:
        self._signal(record, "--kill-whom=main", "--signal=SIGTERM")

    def kill(self, record: Record) -> None:
        self._signal(record, "--kill-whom=all", "--signal=SIGKILL")

    def collect_logs(self, record: Record) -> None:
        """The unit appends to the files itself."""

    def forget(self, record: Record) -> None:
        self._call("reset-failed", unit_name(record), check=False)

    def _signal(self, record: Record, *options: str) -> None:
        take_claim(self._state.engine(record.instance))
        self._call("kill", *options, unit_name(record), check=False)

    def _call(self, *words: str, check: bool = True) -> str:
        try:
            found = programs.answer(
                ["systemctl", "--no-ask-password", "--no-pager", *words],
                environment=os.environ,
                seconds=15,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DriverError(f"systemctl {words[0]}: {type(error).__name__}") from None
        if check and found.returncode:
            raise DriverError(f"systemctl {words[0]}: {found.stderr.strip()[:200]}")
        return found.stdout


def unit_name(record: Record) -> str:
    return f"nan-engine@{record.instance}.service"


def units(values: dict[str, str]) -> dict[str, str]:
    """File name → text, from the templates in deploy/engine/systemd with `@@NAME@@` filled in."""
    found = {}
    for template in sorted((PROJECT / "deploy/engine/systemd").glob("*.in")):
        text = template.read_text()
        for name, value in values.items():
            if any(character in value for character in "\n\"'\\% "):
                raise ValueError(f"{name} can't stand in a unit: {value!r}")
            text = text.replace(f"@@{name}@@", value)
        found[template.name.removesuffix(".in")] = text
    return found


def _exit_code(found: dict[str, str], ended: dict[str, Any]) -> int | None:
    """systemd forgets an inactive unit; then what ExecStopPost noted is left.

    ExecMainCode is waitid(2)'s si_code: 1 exited, 2 killed, 3 dumped core.
    """
    how, status = found.get("ExecMainCode", ""), found.get("ExecMainStatus", "")
    if how in ("1", "2", "3") and status.isdigit():
        return int(status) if how == "1" else -int(status)
    return ended.get("code")


def _members(group: str) -> frozenset[int]:
    """The living ones of the cgroup and of those below it."""
    if not group or group == "/":
        return frozenset()
    pids: set[int] = set()
    for file in (CGROUPS / group.lstrip("/")).rglob("cgroup.procs"):
        try:
            pids.update(int(line) for line in file.read_text().split())
        except OSError:
            continue
    return frozenset(pid for pid in pids if processes.look(pid))
