"""A socket that is missing, hangs, drips or talks nonsense."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from inference.places import reconcile
from inference.pool import Pool, PoolUnavailable

TIMEOUT = 0.4


@contextmanager
def answering(folder: Path, script: Callable[[socket.socket], None]) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "admin.sock"))
        listener.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with client, suppress(OSError):
                        script(client)

        threading.Thread(target=serve, daemon=True).start()
        yield


def refused(folder: Path) -> str:
    begun = time.monotonic()
    with pytest.raises(PoolUnavailable) as error:
        reconcile(Pool(folder, timeout=TIMEOUT), [])
    assert time.monotonic() - begun < 2 * TIMEOUT
    return error.value.code


def test_no_socket(tmp_path: Path) -> None:
    assert refused(tmp_path) == "missing"


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "admin.sock"))
    assert refused(tmp_path) == "unreachable"


def test_it_hangs(tmp_path: Path) -> None:
    with answering(tmp_path, lambda client: time.sleep(3)):
        assert refused(tmp_path) == "timeout"


def test_it_drips_and_never_ends(tmp_path: Path) -> None:
    def drip(client: socket.socket) -> None:
        while True:
            client.sendall(b".")
            time.sleep(0.05)

    with answering(tmp_path, drip):
        assert refused(tmp_path) == "timeout"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"Permission denied\n",
        b"\xff\xfe\x00" * 500,
        b"Pid: x\n1\n# be_id be_name\n\n# pxname,svname\n\n",
        b"Pid: 1\nUptime_sec: 9\nStart_time_sec: 1\n1\n# be_id be_name srv_id srv_name\n"
        b"3 slot01 1 r1\n\n# pxname,svname,qcur\n\n",
    ],
)
def test_it_talks_nonsense(tmp_path: Path, said: bytes) -> None:
    def talk(client: socket.socket) -> None:
        client.recv(4096)
        client.sendall(said)

    with answering(tmp_path, talk):
        assert refused(tmp_path) == "unreadable"
        assert not (tmp_path / "server-state").exists()
