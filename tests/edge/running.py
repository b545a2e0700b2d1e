"""A real HAProxy with the rendered files on free ports, in front of scripted servers."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference import pool
from nan.local import edge
from tests.fakes.raw_http import RawServer
from tests.ports import free_port


@dataclass
class RunningEdge:
    run_dir: Path
    site: int
    api: int
    pool: int
    ops: int
    log_file: Path
    process: subprocess.Popen[bytes]

    @property
    def runtime(self) -> pool.Pool:
        return pool.Pool(self.run_dir)

    def serve(
        self, engine: RawServer | int, *, number: int = 1, state: pool.State = "ready"
    ) -> None:
        """Into service at once, without the proof that the fleet waits for; reached as /chat/v1."""
        key = ("slot01", number)
        port = engine if isinstance(engine, int) else engine.port
        self.runtime.set_names({"chat": "slot01"})
        address = pool.set_address(key, "127.0.0.1", port)
        assert self.runtime.apply([address, pool.set_state(key, state)]) == []

    def log(self) -> list[dict[str, Any]]:
        """Access lines so far; HAProxy writes one when the answer has ended."""
        time.sleep(0.1)
        lines = self.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


def settings_for(run_dir: Path, **changes: Any) -> edge.EdgeSettings:
    """Settings on free ports; upstreams that a test does not name are dead."""
    site, api = free_port(), free_port()
    values: dict[str, Any] = {
        "run_dir": run_dir,
        "site_url": f"http://127.0.0.1:{site}",
        "api_url": f"http://127.0.0.1:{api}",
        "site_bind": f"127.0.0.1:{site}",
        "api_bind": f"127.0.0.1:{api}",
        "pool_bind": f"127.0.0.1:{free_port()}",
        "ops_bind": f"127.0.0.1:{free_port()}",
        "web": f"127.0.0.1:{free_port()}",
        "gateway": f"127.0.0.1:{free_port()}",
    }
    return edge.EdgeSettings(**(values | changes))


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _wait_until_open(port: int, process: subprocess.Popen[bytes], log_file: Path) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"HAProxy did not start:\n{log_file.read_text()}")


@contextmanager
def running_edge(
    run_dir: Path, *, sabotage: Callable[[Path], None] | None = None, **changes: Any
) -> Iterator[RunningEdge]:
    """`sabotage` may spoil the written files before the start."""
    settings = settings_for(run_dir, **changes)
    config = edge.write(settings)
    if sabotage:
        sabotage(run_dir)
    log_file = run_dir / "log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(edge.command(config), stdout=log, stderr=subprocess.STDOUT)
    try:
        ports = [settings.site_bind, settings.api_bind, settings.pool_bind, settings.ops_bind]
        for bind in ports:
            _wait_until_open(_port(bind), process, log_file)
        site, api, pool, ops = map(_port, ports)
        yield RunningEdge(run_dir, site, api, pool, ops, log_file, process)
    finally:
        process.terminate()
        process.wait(10)
