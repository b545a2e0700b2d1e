"""No prompt and no key is kept, whatever way a call ends.

Looks into the whole of LiteLLM's database, Redis and log, so these tests use a gateway of their
own.
"""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
import redis
from psycopg import sql

from tests.gateway.client import ROUTES, Gateway, Member, Models, body
from tests.gateway.conftest import Own

# LiteLLM writes usage in batches some seconds apart.
BATCH_SECONDS = 14


def database_text(url: str) -> Iterator[str]:
    """Each row of each table, as text."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        for (name,) in tables:
            query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(name))
            yield from (f"{name}: {text}" for (text,) in connection.execute(query))


def redis_text(port: int) -> Iterator[str]:
    client = redis.Redis(port=port)
    for key in client.scan_iter(count=1000):
        yield f"{key!r}: {client.dump(key)!r}"


def log_text(folder: Path) -> Iterator[str]:
    for path in folder.glob("*.log"):
        yield from (f"{path.name}: {line}" for line in path.read_text().splitlines())


@pytest.fixture(scope="module")
def kept(own_gateway: Own, engine: str) -> tuple[dict[str, str], list[str]]:
    """(secrets that were used, everything that was kept) after calls that end in every way."""
    prompt, word = f"prompt-{secrets.token_hex(16)}", f"ZEBRA{secrets.token_hex(16)}"
    with Gateway(own_gateway.url, own_gateway.environ["LITELLM_MASTER_KEY"]) as gateway:
        models = Models.add(gateway, engine)
        with gateway.member() as bob:
            used = {"prompt": prompt, "key": bob.key, "words beside it": word}
            for route in ROUTES:
                call_in_every_way(bob, models, route, prompt)
                used[f"affinity on {route}"] = affinity_of_last(engine)
                call_with_words(bob, models, route, word)
            used["master key"] = gateway_key(own_gateway)
            time.sleep(BATCH_SECONDS)
        models.remove()
    found = [
        *database_text(own_gateway.database),
        *redis_text(own_gateway.redis_port),
        *log_text(own_gateway.folder),
    ]
    return used, found


def gateway_key(own: Own) -> str:
    return own.environ["LITELLM_MASTER_KEY"]


def affinity_of_last(engine: str) -> str:
    """What the engine got with the last call: made of the key and the prompt."""
    headers = dict(httpx.get(f"{engine}/state").json()["headers"][-1])
    return str(headers["x-affinity"])


def call_in_every_way(bob: Member, models: Models, route: str, prompt: str) -> None:
    for manner in ("plain", "error", "missing", "hang"):
        for stream in (False, True):
            asked = body(route, models[manner], **({"stream": True} if stream else {}))
            asked |= (
                {"input": prompt}
                if "input" in asked
                else {"messages": [{"role": "user", "content": prompt}]}
            )
            try:
                bob.http.post(route, headers=bob.headers, json=asked, timeout=1)
            except httpx.ReadTimeout:
                assert manner == "hang"


def call_with_words(bob: Member, models: Models, route: str, word: str) -> None:
    """Everything of a request that is neither prompt nor key, and which LiteLLM would keep."""
    names = ("User-Agent", "x-litellm-tags", "x-litellm-end-user-id", "x-session-id", "traceparent")
    headers = {**bob.headers, **dict.fromkeys(names, word)}
    words = {
        "user": word,
        "tags": [word],
        "metadata": {"tags": [word], "user_id": word, "session_id": word, word: word},
        "litellm_metadata": {"tags": [word], "spend_logs_metadata": {word: word}},
        "safety_identifier": word,
        "client_metadata": {word: word},
        "prompt_cache_key": word,
        word: word,
    }
    for manner in ("plain", "error"):
        for stream in (False, True):
            asked = body(route, models[manner], stream=stream, **words)
            address = f"{route}?user={word}&tags={word}"
            bob.http.post(address, headers=headers, json=asked, timeout=10)
    bob.http.get("/v1/models", headers=headers)


@pytest.mark.parametrize(
    "name",
    ["prompt", "key", "master key", "words beside it", *(f"affinity on {r}" for r in ROUTES)],
)
def test_nothing_secret_is_kept(kept: tuple[dict[str, str], list[str]], name: str) -> None:
    used, found = kept
    assert len(found) > 100  # the search has seen something
    assert [line.split(":")[0] for line in found if used[name] in line] == []


def test_the_answer_is_not_kept(kept: tuple[dict[str, str], list[str]]) -> None:
    assert [line for line in kept[1] if "Hello from upstream" in line] == []


def test_no_row_for_a_request(own_gateway: Own, kept: object) -> None:
    with psycopg.connect(own_gateway.database) as connection:
        counts = [
            connection.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            ).fetchone()
            for table in ("LiteLLM_SpendLogs", "LiteLLM_ErrorLogs", "LiteLLM_UserTable")
        ]
    assert counts == [(0,), (0,), (0,)]
