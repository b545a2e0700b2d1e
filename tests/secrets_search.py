"""Looks for a secret everywhere that a running product keeps anything.

For keys now, for prompts later: `find_everywhere(needle, …)` gives the places, so a test says
`assert find_everywhere(…) == []`. Bytes are compared, in the forms in which a text gets stored:
plain, base64 (at each of the three offsets), hex, percent-encoded, backwards, gzip and zlib inside.
"""

import base64
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import redis
from psycopg import sql

INFLATE_BELOW = 4 * 1024 * 1024


def find_everywhere(
    needle: str,
    *,
    databases: Sequence[str] = (),
    redis_url: str | None = None,
    folders: Sequence[Path] = (),
) -> list[str]:
    """The tables and columns, Redis keys and files that hold `needle` in some form."""
    forms = variants(needle)
    found: list[str] = []
    for url in databases:
        found += _in_database(url, forms)
    if redis_url:
        found += _in_redis(redis_url, forms)
    for folder in folders:
        found += _in_folder(Path(folder), forms)
    return found


def variants(needle: str) -> list[bytes]:
    """`needle` as it may lie inside of something longer."""
    raw = needle.encode()
    forms = [raw, raw[::-1], raw.hex().encode(), raw.hex().upper().encode()]
    forms += [quote(needle, safe="").encode(), needle.encode("utf-16-le")]
    for offset in range(3):
        # Within a longer text, base64 depends on the position modulo 3; the ends depend on the
        # neighbours and are left out.
        coded = base64.b64encode(b"\0" * offset + raw)
        inner = coded[4 if offset else 0 : (offset + len(raw)) // 3 * 4]
        forms += [inner, inner.replace(b"+", b"-").replace(b"/", b"_")]
    return list(dict.fromkeys(forms))


def holds(content: bytes, forms: Sequence[bytes]) -> bool:
    return any(form in text for text in _texts(content) for form in forms)


def _texts(content: bytes) -> Iterator[bytes]:
    yield content
    if content[:2] == b"\x1f\x8b" and len(content) < INFLATE_BELOW:
        try:
            yield gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return
    if content[:1] == b"\x78" and len(content) < INFLATE_BELOW:
        try:
            yield zlib.decompress(content)
        except zlib.error:
            return


# -- Postgres: every column of every table, as text and as bytes --------------------------------


def _in_database(url: str, forms: Sequence[bytes]) -> list[str]:
    found = []
    with psycopg.connect(url) as connection:
        name = connection.info.dbname
        for schema, table in _tables(connection):
            columns = _columns_that_hold(connection, schema, table, forms)
            found += [f"postgres {name}: {schema}.{table}.{column}" for column in columns]
    return found


def _tables(connection: Any) -> list[tuple[str, str]]:
    """With materialised views and other schemas; Postgres' own catalogues too hold comments."""
    query = """
        SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'm', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
          AND n.nspname NOT LIKE 'pg_toast%' ORDER BY 1, 2
    """
    return connection.execute(query).fetchall()


def _columns_that_hold(
    connection: Any, schema: str, table: str, forms: Sequence[bytes]
) -> list[str]:
    """Reads the rows here: an SQL search would have to know every type, and this has only one way.

    Every value comes as Postgres' own text; bytea as its bytes.
    """
    cursor = connection.cursor()
    kinds = _kinds(connection, schema, table)
    columns = [
        sql.Identifier(name)
        if kind == "bytea"
        else sql.SQL("{}::text").format(sql.Identifier(name))
        for name, kind in kinds
    ]
    if not columns:
        return []
    query = sql.SQL("SELECT {} FROM {}.{}")
    cursor.execute(
        query.format(sql.SQL(", ").join(columns), sql.Identifier(schema), sql.Identifier(table))
    )
    found = set()
    for row in cursor:
        for (name, _kind), value in zip(kinds, row, strict=True):
            content = value.encode() if isinstance(value, str) else bytes(value or b"")
            if name not in found and holds(content, forms):
                found.add(name)
    return sorted(found)


def _kinds(connection: Any, schema: str, table: str) -> list[tuple[str, str]]:
    query = """
        SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
    """
    name = sql.Identifier(schema, table).as_string(connection)
    return connection.execute(query, [name]).fetchall()


# -- Redis: every database, every key of every type ----------------------------------------------


def _in_redis(url: str, forms: Sequence[bytes]) -> list[str]:
    found = []
    with redis.Redis.from_url(url) as first:
        numbers = [name.removeprefix("db") for name in first.info("keyspace")]
    for number in numbers:
        with redis.Redis.from_url(url, db=int(number)) as client:
            for name in client.scan_iter(count=1000):
                contents = [name, *_redis_values(client, name)]
                if any(holds(content, forms) for content in contents):
                    found.append(f"redis {number}: {name.decode(errors='replace')}")
    return found


def _redis_values(client: Any, name: bytes) -> Iterator[bytes]:
    kind = client.type(name)
    if kind == b"none":  # It has expired since it was listed.
        return
    yield from READERS[kind](client, name)


def _pairs(fields: dict[bytes, bytes]) -> list[bytes]:
    return [part for pair in fields.items() for part in pair]


# A type that is missing here is a KeyError, not a place that nobody searched.
READERS: dict[bytes, Callable[[Any, bytes], Iterable[bytes]]] = {
    b"string": lambda client, name: [client.get(name) or b""],
    b"list": lambda client, name: client.lrange(name, 0, -1),
    b"set": lambda client, name: client.smembers(name),
    b"zset": lambda client, name: client.zrange(name, 0, -1),
    b"hash": lambda client, name: _pairs(client.hgetall(name)),
    b"stream": lambda client, name: [
        part for _id, fields in client.xrange(name) for part in _pairs(fields)
    ],
}


# -- Files: logs, mails, whatever a state folder holds -------------------------------------------


def _in_folder(folder: Path, forms: Sequence[bytes]) -> list[str]:
    """Names too. In pieces that overlap, so that a large file needs little memory."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder)).encode()
        if holds(name, forms) or (path.is_file() and _file_holds(path, forms)):
            found.append(f"file {path}")
    return found


def _file_holds(path: Path, forms: Sequence[bytes], piece: int = 8 * 1024 * 1024) -> bool:
    overlap = max(len(form) for form in forms)
    before = b""
    try:
        with path.open("rb") as file:
            while content := file.read(piece):
                if holds(before + content, forms) or (not before and holds(content, forms)):
                    return True
                before = content[-overlap:]
    except FileNotFoundError:
        return False
    return False
