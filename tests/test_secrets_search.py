"""The search finds what was planted; a search that finds nothing would prove nothing."""

import base64
import gzip
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
import redis
from django.conf import settings
from django.db import connection

from tests.secrets_search import find_everywhere, variants


@pytest.fixture
def secret() -> str:
    return "sk-" + secrets.token_urlsafe(32)


@pytest.fixture
def database(django_db_blocker: object, db: None) -> str:
    """The test database's URL. Planted rows are committed by a connection of their own."""
    values = connection.settings_dict
    password = f":{values['PASSWORD']}" if values["PASSWORD"] else ""
    return (
        f"postgresql://{values['USER']}{password}@{values['HOST']}:{values['PORT']}"
        f"/{values['NAME']}"
    )


@pytest.fixture
def schema(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as planted:
        planted.execute("CREATE SCHEMA planted")
        planted.execute("SET search_path = planted")
        yield planted
        planted.execute("DROP SCHEMA planted CASCADE")


COLUMNS = {
    "text": "text",
    "varchar": "varchar(500)",
    "json": "json",
    "jsonb": "jsonb",
    "texts": "text[]",
    "bytes": "bytea",
}


@pytest.mark.parametrize("column", COLUMNS)
def test_every_kind_of_column(
    secret: str, database: str, schema: psycopg.Connection, column: str
) -> None:
    schema.execute(f'CREATE TABLE "Odd name" (id int, "{column}" {COLUMNS[column]})')
    values = {
        "json": json.dumps({"a": [secret]}),
        "jsonb": json.dumps({"a": {secret: 1}}),
        "texts": [f"x{secret}"],
        "bytes": b"\0\1" + secret.encode(),
    }
    value = values.get(column, f"before {secret} after")
    schema.execute('INSERT INTO "Odd name" VALUES (1, NULL), (2, %s)', [value])
    found = find_everywhere(secret, databases=[database])
    assert [place.split(": ")[1] for place in found] == [f"planted.Odd name.{column}"]


FORMS = {
    "plain": lambda s: s,
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 inside": lambda s: base64.b64encode(f"x{s}yz".encode()).decode(),
    "base64 further inside": lambda s: base64.urlsafe_b64encode(f"xy{s}".encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "quoted": lambda s: quote(f"key={s}", safe=""),
    "backwards": lambda s: s[::-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form(secret: str, tmp_path: Path, form: str) -> None:
    (tmp_path / "log").write_text(f"a line\nwith {FORMS[form](secret)} in it")
    assert find_everywhere(secret, folders=[tmp_path]) == [f"file {tmp_path / 'log'}"]


def test_no_form_is_short_enough_to_be_found_by_chance(secret: str) -> None:
    assert min(len(form) for form in variants(secret)) >= 40


def test_files_deep_compressed_large_and_by_name(secret: str, tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "mail.eml").write_text(secret)
    (deep / "log.gz").write_bytes(gzip.compress(secret.encode()))
    (deep / secret).write_text("")
    piece = 8 * 1024 * 1024
    (deep / "large").write_bytes(b"x" * (piece - 10) + secret.encode() + b"x" * 100)
    (deep / "clean").write_text("sk-nothing")
    found = find_everywhere(secret, folders=[tmp_path])
    assert found == [
        f"file {deep / name}" for name in sorted(["large", "log.gz", "mail.eml", secret])
    ]


def test_every_type_of_redis(secret: str) -> None:
    url = settings.CACHES["default"]["LOCATION"]
    client = redis.Redis.from_url(url)
    client.set("planted:string", f"x{secret}")
    client.set(f"planted:name:{secret}", "x")
    client.rpush("planted:list", "a", secret)
    client.sadd("planted:set", secret)
    client.zadd("planted:zset", {secret: 1})
    client.hset("planted:hash", mapping={"a": secret})
    client.hset("planted:field", mapping={secret: "a"})
    client.xadd("planted:stream", {"a": secret})
    client.set("planted:clean", "x")
    number = url.rsplit("/", 1)[1]
    names = ["field", "hash", "list", f"name:{secret}", "set", "stream", "string", "zset"]
    found = find_everywhere(secret, redis_url=url.rsplit("/", 1)[0])
    assert sorted(found) == [f"redis {number}: planted:{name}" for name in names]


def test_nothing_where_nothing_is(secret: str, database: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("clean")
    redis_url = settings.CACHES["default"]["LOCATION"]
    places = {"databases": [database], "redis_url": redis_url, "folders": [tmp_path]}
    assert find_everywhere(secret, **places) == []
