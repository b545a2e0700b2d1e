"""The runner itself, with migrations of the tests' own, on a real Postgres."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from deploy.gateway import migrate

TABLE = ("1_table", "CREATE TABLE things (id int); INSERT INTO things VALUES (1);")
INDEX = ("2_index", 'CREATE INDEX CONCURRENTLY IF NOT EXISTS "Things_idx" ON things (id);')
MORE = ("3_more", "INSERT INTO things VALUES (2)")


@pytest.fixture
def empty(database: str) -> Iterator[str]:
    """URL of an empty database."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE DATABASE migrated")
        try:
            yield database.removesuffix("litellm") + "migrated"
        finally:
            connection.execute("DROP DATABASE migrated WITH (FORCE)")


@pytest.fixture
def connection(empty: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(empty, autocommit=True) as found:
        yield found


def things(connection: psycopg.Connection) -> list[int]:
    return [number for (number,) in connection.execute("SELECT id FROM things ORDER BY id")]


def test_each_is_applied_once_and_in_order(connection: psycopg.Connection) -> None:
    assert migrate.apply(connection, [TABLE, INDEX]) == 2
    assert migrate.apply(connection, [TABLE, INDEX, MORE]) == 1
    assert migrate.apply(connection, [TABLE, INDEX, MORE]) == 0
    assert things(connection) == [1, 2]


def test_an_interrupted_one_leaves_nothing_behind(connection: psycopg.Connection) -> None:
    broken = ("3_more", "INSERT INTO things VALUES (2); SELECT 1/0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate.apply(connection, [TABLE, broken])
    assert things(connection) == [1]
    assert migrate.apply(connection, [TABLE, MORE]) == 1
    assert things(connection) == [1, 2]


def test_a_half_built_index_is_built_again(connection: psycopg.Connection) -> None:
    migrate.apply(connection, [TABLE])
    connection.execute("INSERT INTO things VALUES (1)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute('CREATE UNIQUE INDEX CONCURRENTLY "Things_idx" ON things (id)')
    migrate.apply(connection, [TABLE, INDEX])
    valid = connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = '\"Things_idx\"'::regclass"
    )
    assert valid.fetchone() == (True,)


def test_two_at_the_same_time_apply_it_once(empty: str, connection: psycopg.Connection) -> None:
    slow = ("1_table", "SELECT pg_sleep(0.5); " + TABLE[1])
    counts: list[int] = []

    def run() -> None:
        with psycopg.connect(empty, autocommit=True) as own:
            counts.append(migrate.apply(own, [slow]))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts) == [0, 1]
    assert things(connection) == [1]


def test_what_prismas_own_tool_applied_is_not_applied_again(connection: psycopg.Connection) -> None:
    connection.execute(
        "CREATE TABLE _prisma_migrations"
        " (migration_name text, finished_at timestamptz, rolled_back_at timestamptz);"
        "INSERT INTO _prisma_migrations VALUES ('1_table', now(), NULL), ('3_more', NULL, NULL);"
        + TABLE[1]
    )
    assert migrate.apply(connection, [TABLE, MORE]) == 1
    assert things(connection) == [1, 2]


def test_parameters_that_only_prisma_knows_are_left_out() -> None:
    url = (
        "postgresql://u:p%40@h:5/db?connection_limit=3&pool_timeout=9&sslmode=require&schema=public"
    )
    assert migrate.libpq_url(url) == "postgresql://u:p%40@h:5/db?sslmode=require"
