"""A HAProxy that can be killed, started again and reloaded, and engines that count."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from inference.places import Place, PoolView, Want, reconcile
from inference.pool import Pool, PoolUnavailable
from nan.local import edge
from tests.edge.running import settings_for
from tests.fakes.raw_http import Answer, Connection, RawServer, Request, post, request_bytes
from tests.waiting import wait_until

CHAT = "/chat/v1/chat/completions"


def wait_for(true: Callable[[], Any], seconds: float = 15, every: float = 0.1) -> float:
    """How long it took."""
    begun = time.monotonic()
    wait_until(true, seconds=seconds, every=every)
    return time.monotonic() - begun


@dataclass
class Engine:
    """Answers at once, or streams `chunks` every tenth of a second; `hangs` at /health only."""

    chunks: int = 0
    die_after: int = 0
    server: RawServer = field(init=False)

    def __enter__(self) -> Engine:
        self.server = RawServer(self._script).__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()

    @property
    def seen(self) -> int:
        return len(self.server.requests)

    def _script(self, request: Request, connection: Connection) -> None:
        if not self.chunks:
            connection.answer(200, {"ok": True}, {"content-type": "application/json"})
            return
        connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for number in range(self.chunks):
            if self.die_after and number == self.die_after:
                connection.socket.shutdown(socket.SHUT_RDWR)
                return
            connection.chunk(b"data: %d\n\n" % number)
            time.sleep(0.1)
        connection.chunk(b"data: [DONE]\n\n")
        connection.send(b"0\r\n\r\n")


class Proxy:
    def __init__(self, run_dir: Path, **changes: Any) -> None:
        self.settings = settings_for(run_dir, **changes)
        self.run_dir = run_dir
        self.port = int(self.settings.pool_bind.rpartition(":")[2])
        self.pool = Pool(run_dir)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        config = edge.write(self.settings)
        with (self.run_dir / "log").open("ab") as log:
            self.process = subprocess.Popen(edge.command(config), stdout=log, stderr=log)
        wait_for(self._answers, every=0.02)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            self.pool.look()
        except (OSError, PoolUnavailable):
            return False
        return True

    def kill(self) -> None:
        """All of it, with SIGKILL: nothing is written or said."""
        assert self.process
        for child in psutil.Process(self.process.pid).children(recursive=True):
            child.kill()
        self.process.kill()
        self.process.wait(10)

    def restart(self) -> None:
        self.kill()
        self.start()

    def reload(self) -> None:
        before = self.pool.look().worker
        assert self.process
        os.kill(self.process.pid, signal.SIGUSR2)
        wait_for(lambda: self._answers() and self.pool.look().worker != before, every=0.02)

    def stop(self) -> None:
        assert self.process
        self.process.terminate()
        self.process.wait(10)

    def reconcile(self, *wanted: Place) -> PoolView:
        return reconcile(self.pool, wanted)

    def until_ready(self, *wanted: Place) -> None:
        keys = [place.key for place in wanted]
        wait_for(lambda: all(self.reconcile(*wanted).places[key].in_service for key in keys))

    def chat(self, **options: Any) -> Answer:
        return post(self.port, CHAT, **options)


@contextmanager
def running(run_dir: Path, **changes: Any) -> Iterator[Proxy]:
    proxy = Proxy(run_dir, **({"queue_seconds": 1} | changes))
    proxy.start()
    try:
        proxy.pool.set_names({"chat": "slot01"})
        yield proxy
    finally:
        proxy.stop()


def at(engine: Engine, want: Want, *, number: int = 1, **changes: Any) -> Place:
    return Place(
        backend="slot01",
        number=number,
        address="127.0.0.1",
        port=engine.server.port,
        want=want,
        **changes,
    )


class Caller(threading.Thread):
    """One call in the background; `body` is what came, `whole` whether it ended as it should."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.status = 0
        self.body = b""
        self.retry_after = ""
        self.seconds = 0.0
        self.start()

    def run(self) -> None:
        begun = time.monotonic()
        with closing(socket.create_connection(("127.0.0.1", self.port), 30)) as connection:
            connection.sendall(request_bytes("POST", CHAT, body=b'{"stream":true}'))
            while part := connection.recv(65_536):
                self.body += part
                if self.whole:
                    break
        self.seconds = time.monotonic() - begun
        self.status = int(self.body.split(b" ", 2)[1]) if self.body else 0

    @property
    def begun(self) -> bool:
        return b"data: 0" in self.body

    @property
    def whole(self) -> bool:
        return self.body.endswith(b"0\r\n\r\n") or b"}" in self.body

    def done(self) -> Caller:
        self.join(30)
        assert not self.is_alive()
        return self


class Traffic:
    """Calls all the time from a few threads; `statuses` has every answer, 0 for a cut one."""

    def __init__(self, port: int, threads: int = 3) -> None:
        self.statuses: list[int] = []
        self._port, self._ended = port, threading.Event()
        self._busy = [threading.Lock() for _ in range(threads)]
        self._threads = [
            threading.Thread(target=self._run, args=(busy,), daemon=True) for busy in self._busy
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(30)

    @contextmanager
    def between_calls(self) -> Iterator[None]:
        """While no call is under way, and none begins."""
        with ExitStack() as held:
            for busy in self._busy:
                held.enter_context(busy)
            yield

    def _run(self, busy: threading.Lock) -> None:
        while not self._ended.wait(0.02):
            with busy:
                try:
                    self.statuses.append(post(self._port, CHAT).status)
                except OSError:
                    self.statuses.append(0)
