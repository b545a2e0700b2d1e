"""Is a part really ready? Each function makes one real call and answers within two seconds.

They return False, or raise anything, for *not yet*: the supervisor asks again.
"""

import urllib.error
import urllib.request
from collections.abc import Collection
from pathlib import Path

SECONDS = 2


def postgres(url: str) -> bool:
    import psycopg

    with psycopg.connect(url, connect_timeout=SECONDS, autocommit=True) as connection:
        return connection.execute("select 1").fetchone() == (1,)


def valkey(url: str) -> bool:
    """False while it still loads its append-only file (PING answers LOADING: an exception)."""
    import redis

    client = redis.Redis.from_url(url, socket_timeout=SECONDS, socket_connect_timeout=SECONDS)
    try:
        return bool(client.ping())
    finally:
        client.close()


def http(url: str, *, accept: Collection[int] = (200,)) -> bool:
    """No proxy settings, no redirects: the part itself has to answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(url, timeout=SECONDS) as answer:
            return answer.status in accept
    except urllib.error.HTTPError as error:
        return error.code in accept


def contains(url: str, text: bytes) -> bool:
    """For answers whose status says nothing."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        url, timeout=SECONDS
    ) as answer:
        return text in answer.read(64 * 1024)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def written_since(mark: Path, file: Path) -> bool:
    """Whether `file` is newer than `mark`; what stores it may add an ending to its name."""
    began = mark.stat().st_mtime_ns
    found = file.parent.glob(f"{file.name}*")
    return any(path.stat().st_mtime_ns >= began for path in found)


def written(file: Path) -> bool:
    """A file that the part writes when it is ready; the supervisor removes it before a start."""
    return file.exists()
