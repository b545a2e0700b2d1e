"""Bring LiteLLM's database up to date with LiteLLM's own SQL migrations, each once.

    DATABASE_URL=… .nan/gateway/venv/bin/python deploy/gateway/migrate.py

Prisma's own `migrate deploy` needs an engine that can only be downloaded from its vendor. A table
of ours remembers what was applied. Safe to repeat, to interrupt, and to run twice at once.
"""

from __future__ import annotations

import os
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg

LEDGER = """
CREATE TABLE IF NOT EXISTS nan_gateway_migration (
    name text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
# Any number that no other program uses for an advisory lock in this database.
LOCK = 7_331_540_021
CONCURRENTLY = re.compile(
    r"^\s*CREATE\s+(UNIQUE\s+)?INDEX\s+CONCURRENTLY", re.IGNORECASE | re.MULTILINE
)
LIBPQ = {
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "connect_timeout",
    "application_name",
    "options",
}


def migrations() -> list[tuple[str, str]]:
    """(name, SQL) in order: the names begin with the time they were written at."""
    spec = find_spec("litellm_proxy_extras")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            "litellm_proxy_extras is missing: run this with the gateway venv's Python."
        )
    folder = Path(spec.origin).parent / "migrations"
    return [(path.parent.name, path.read_text()) for path in sorted(folder.glob("*/migration.sql"))]


def apply(connection: psycopg.Connection, wanted: list[tuple[str, str]]) -> int:
    """Apply what is missing and return how many; the connection is in autocommit mode."""
    connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        connection.execute(LEDGER)
        _take_over_prisma_ledger(connection)
        done = {name for (name,) in connection.execute("SELECT name FROM nan_gateway_migration")}
        missing = [(name, sql) for name, sql in wanted if name not in done]
        for number, (name, sql) in enumerate(missing, start=1):
            if number % 25 == 0 or number == len(missing):
                print(f"gateway: database migration {number} of {len(missing)}", flush=True)
            _apply_one(connection, name, sql)
        return len(missing)
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _apply_one(connection: psycopg.Connection, name: str, sql: str) -> None:
    """With its record in one transaction; an index built concurrently may not be in one."""
    if CONCURRENTLY.search(sql):
        _drop_half_built_indexes(connection)
        connection.execute(sql)
        _record(connection, name)
        return
    with connection.transaction():
        connection.execute(sql)
        _record(connection, name)


def _record(connection: psycopg.Connection, name: str) -> None:
    connection.execute("INSERT INTO nan_gateway_migration (name) VALUES (%s)", [name])


def _drop_half_built_indexes(connection: psycopg.Connection) -> None:
    """An interrupted build leaves an invalid index, which IF NOT EXISTS takes for done."""
    query = (
        "SELECT quote_ident(relname) FROM pg_index JOIN pg_class ON oid = indexrelid"
        " WHERE NOT indisvalid"
    )
    for (name,) in connection.execute(query).fetchall():
        connection.execute(f"DROP INDEX {name}".encode())


def _take_over_prisma_ledger(connection: psycopg.Connection) -> None:
    """LiteLLM's official image keeps its own account of what it applied."""
    if connection.execute("SELECT to_regclass('_prisma_migrations')").fetchone() == (None,):
        return
    connection.execute(
        "INSERT INTO nan_gateway_migration (name)"
        " SELECT DISTINCT migration_name FROM _prisma_migrations"
        " WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL ON CONFLICT DO NOTHING"
    )


def libpq_url(url: str) -> str:
    """Without the parameters that only Prisma knows, such as connection_limit."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name in LIBPQ]
    return urlunsplit(parts._replace(query=urlencode(kept)))


def connect(url: str, *, wait_seconds: float) -> psycopg.Connection:
    """Waits for a Postgres that is still starting."""
    deadline = time.monotonic() + wait_seconds
    announced = False
    while True:
        try:
            return psycopg.connect(libpq_url(url), autocommit=True, connect_timeout=5)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
        if not announced:
            print("gateway: waiting for Postgres …", flush=True)
            announced = True
        time.sleep(0.2)


def main() -> int:
    url = os.environ.get("DATABASE_URL")
    if not url:
        print("gateway: DATABASE_URL is not set; it names LiteLLM's own database.", file=sys.stderr)
        return 1
    try:
        with connect(url, wait_seconds=60) as connection:
            count = apply(connection, migrations())
    except (psycopg.Error, ModuleNotFoundError) as error:
        print(f"gateway: database not migrated: {error}".strip(), file=sys.stderr)
        return 1
    print(f"gateway: {count} database migrations applied", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
