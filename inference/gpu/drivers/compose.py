"""Engines as containers, each from a Compose file of its own below the state folder.

The key is passed through the Compose client's environment (`environment: {VLLM_API_KEY: null}`),
so that it is in no file and no argv. Images are there beforehand: nothing is pulled at a start.
"""

import json
import os
import subprocess
import time
from typing import Any

from inference.gpu import programs
from inference.gpu.drivers import NOTHING, DriverError, Launch, Seen
from inference.gpu.host import Host
from inference.gpu.processes import MARKER
from inference.gpu.state import HostState, Record, write_atomically

LABEL = "net.nan.engine"
# `docker compose up` of an image that is there takes seconds.
UP_SECONDS = 60
LOG_LINES = 400
# Say where things are outside; the GPUs come in by number, and are numbered from 0 inside.
OF_THE_HOST = frozenset((
    "PATH", "HOME", "USER", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "TMPDIR", "CUDA_HOME",
    "VLLM_CACHE_ROOT", "CUDA_VISIBLE_DEVICES",
))  # fmt: skip


class ComposeDriver:
    def __init__(self, host: Host, state: HostState) -> None:
        self._host = host
        self._state = state

    def start(self, record: Record, launch: Launch) -> None:
        file = self._state.engine(record.instance) / "compose.json"
        content = compose_file(
            host=self._host, record=record, launch=launch, marker=self._marker(record)
        )
        write_atomically(file, json.dumps(content, indent=2))
        self._call(
            "compose", f"--project-name={container(record)}", "--file", str(file),
            "up", "--detach", "--no-build", "--pull=never",
            secrets=launch.secrets,
        )  # fmt: skip

    def look(self, record: Record) -> Seen:
        """https://docs.docker.com/reference/cli/docker/inspect/"""
        answer = self._call("inspect", "--type=container", container(record), check=False)
        found = json.loads(answer or "[]")
        if not found or found[0]["Config"]["Labels"].get(LABEL) != self._marker(record):
            early = record.started_at is None and time.time() - record.asked_at < UP_SECONDS
            return Seen(main=True, left=0, pids=frozenset()) if early else NOTHING
        state = found[0]["State"]
        if state["Running"] or state["Status"] == "created":
            pids = self._pids(record) if state["Running"] else frozenset()
            return Seen(main=True, left=max(len(pids), 1), pids=pids)
        code = state["ExitCode"]
        return Seen(main=False, left=0, pids=frozenset(), exit_code=_signalled(code))

    def terminate(self, record: Record) -> None:
        self._call("kill", "--signal=SIGTERM", container(record), check=False)

    def kill(self, record: Record) -> None:
        """The container's process namespace ends with its first process."""
        self._call("kill", "--signal=SIGKILL", container(record), check=False)

    def collect_logs(self, record: Record) -> None:
        folder = self._state.engine(record.instance)
        found = self._run("logs", f"--tail={LOG_LINES}", container(record))
        write_atomically(folder / "stdout.log", found.stdout)
        write_atomically(folder / "stderr.log", found.stderr)

    def forget(self, record: Record) -> None:
        self._call("rm", "--volumes", container(record), check=False)

    def _marker(self, record: Record) -> str:
        return self._state.marker(record.instance)

    def _pids(self, record: Record) -> frozenset[int]:
        rows = self._call("top", container(record), "-o", "pid", check=False).split()[1:]
        return frozenset(int(row) for row in rows if row.isdigit())

    def _call(self, *words: str, check: bool = True, secrets: dict[str, str] | None = None) -> str:
        found = self._run(*words, secrets=secrets)
        if check and found.returncode:
            raise DriverError(f"docker {words[0]}: {found.stderr.strip()[-200:]}")
        return found.stdout if found.returncode == 0 else ""

    def _run(
        self, *words: str, secrets: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT")
                if name in os.environ}  # fmt: skip
        try:
            return programs.answer(
                ["docker", *words], environment={**kept, **(secrets or {})}, seconds=25
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DriverError(f"docker {words[0]}: {type(error).__name__}") from None


def container(record: Record) -> str:
    return f"nan-engine-{record.instance}"


def compose_file(*, host: Host, record: Record, launch: Launch, marker: str) -> dict[str, Any]:
    """JSON is YAML, so Compose reads it, and nothing in a value can end a string.

    https://github.com/compose-spec/compose-spec/blob/main/spec.md
    """
    environment: dict[str, str | None] = {
        name: _literal(value)
        for name, value in launch.environment.items()
        if name not in OF_THE_HOST
    }
    service: dict[str, Any] = {
        "image": host.image,
        "container_name": container(record),
        "labels": {LABEL: marker},
        "entrypoint": [launch.command[0]],
        "command": [_literal(word) for word in launch.command[1:]],
        "environment": {**environment, MARKER: marker, **dict.fromkeys(launch.secrets)},
        "network_mode": "host",
        "ipc": "private",
        "shm_size": "16gb",
        "init": False,
        "restart": "no",
        "stop_signal": "SIGTERM",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "volumes": [{"type": "bind", "source": str(host.hf_home), "target": str(host.hf_home),
                     "read_only": True, "bind": {"create_host_path": False}}],
        "logging": {"driver": "json-file", "options": {"max-size": "32m", "max-file": "2"}},
        "ulimits": {"memlock": -1, "nofile": 65536},
    }  # fmt: skip
    if record.gpus:
        gpus = [str(gpu) for gpu in record.gpus]
        device = {"driver": "nvidia", "device_ids": gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return {"services": {"engine": service}}


def _literal(text: str) -> str:
    """Compose would fill in `$NAME`."""
    return text.replace("$", "$$")


def _signalled(code: int) -> int:
    """Docker reports an end by signal as 128 + its number; we keep minus the number."""
    return 128 - code if 128 < code < 160 else code
