"""P6: Postgres has no connection left. Nobody's key is called wrong; all recovers by itself."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg

from tests.api import ApiClient
from tests.journeys.conftest import Client
from tests.stack import Stack
from tests.visitor import Visitor, members
from tests.waiting import wait_until

FULL_FOR = 18  # seconds
BACK_WITHIN = 8  # seconds


@contextmanager
def no_connection_left(stack: Stack) -> Iterator[None]:
    """Every connection that the two roles may have is ours, and those of the product are ended."""
    boss = f"postgresql://postgres:{stack.secrets['postgres_superuser']}@127.0.0.1"
    port = stack.record["parts"]["postgres"]["port"]
    held: list[psycopg.Connection] = []
    with psycopg.connect(f"{boss}:{port}/postgres", autocommit=True) as superuser:
        try:
            wait_until(
                lambda: take_all(superuser, stack.databases, held),
                seconds=20,
                what="all connections to be taken",
                every=0.02,
            )
            yield
        finally:
            for connection in held:
                connection.close()


def take_all(
    superuser: psycopg.Connection, urls: list[str], held: list[psycopg.Connection]
) -> bool:
    """True once none but ours is left."""
    for url in urls:
        try:
            while True:
                held.append(psycopg.connect(url, connect_timeout=5))
        except psycopg.OperationalError:
            continue
    ours = [connection.info.backend_pid for connection in held]
    ended = superuser.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE usename IN ('nan', 'litellm') AND pid <> ALL(%s)",
        [ours],
    ).fetchall()
    return not ended


def test_postgres_has_no_connection_left(stack: Stack, client: Client) -> None:
    used, unused, asking = members(stack, 3)
    warm, cold = client(used.create_key()), client(unused.create_key())
    assert warm.call().status_code == 200
    asking.get("/key/")
    asking.post("/key/create")
    statuses: list[int] = []
    with no_connection_left(stack):
        began = time.monotonic()
        says_try_again(used.http.get("/key/"))
        says_try_again(used.http.get("/account/"))
        assert httpx.get(f"{stack.site}/healthz", timeout=10).status_code == 200
        while time.monotonic() - began < FULL_FOR:
            statuses += [call(warm), call(cold)]
    assert set(statuses) <= {200, 503}
    assert 503 in statuses, "the connections were not exhausted for the gateway"
    wait_until(lambda: answers_steadily(used), seconds=BACK_WITHIN, what="the site")
    for api in (warm, cold):
        wait_until(lambda a=api: a.call().status_code == 200, seconds=30, what="the key to work")
    assert client(asking.reveal(seconds=60)).call().status_code == 200


def answers_steadily(person: Visitor) -> bool:
    """Each of the site's threads finds out by itself."""
    return all(person.http.get("/key/").status_code == 200 for _ in range(12))


def says_try_again(answer: httpx.Response) -> None:
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "10"
    assert "try again" in answer.text.lower()


def call(api: ApiClient) -> int:
    answer = api.call()
    if answer.status_code == 503:
        assert int(answer.headers["retry-after"]) > 0
        assert "invalid" not in answer.text.lower()
    time.sleep(0.3)
    return answer.status_code
