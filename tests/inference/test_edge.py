"""What a look at the API says: from outside, as a caller meets it, within seconds."""

import json
import time

import pytest

from inference.edge import look
from tests.fakes.raw_http import Connection, RawServer, Request
from tests.ports import free_port


@pytest.mark.parametrize(
    ("status", "body", "met"),
    [
        (401, {"error": {"code": "invalid_api_key"}}, "up"),
        (503, {"error": {"code": "service_unavailable"}}, "gateway"),
        (503, {"error": {"code": "key_check_unavailable"}}, "keys"),
        (502, {"error": {"code": "bad_gateway"}}, "gateway"),
        (504, {"error": {"code": "timeout"}}, "gateway"),
        (503, {}, "gateway"),
        (500, None, "gateway"),
    ],
)
def test_what_comes_back(status: int, body: object, met: str) -> None:
    asked: list[Request] = []

    def answer(request: Request, connection: Connection) -> None:
        asked.append(request)
        connection.answer(status, json.dumps(body).encode())

    with RawServer(answer) as api:
        assert look(f"http://127.0.0.1:{api.port}") == met
    (request,) = asked
    assert (request.method, request.target) == ("GET", "/v1/models")


def test_each_look_has_a_key_of_its_own() -> None:
    """The gateway would remember that it had looked one up, and tell nothing of its database."""
    keys: list[str] = []

    def answer(request: Request, connection: Connection) -> None:
        keys.append(request.values("authorization")[0])
        connection.answer(401, b"{}")

    with RawServer(answer) as api:
        for _ in range(2):
            look(f"http://127.0.0.1:{api.port}")
    assert len(set(keys)) == 2
    assert all(key.startswith("Bearer sk-") for key in keys)


def test_nobody_there() -> None:
    assert look(f"http://127.0.0.1:{free_port()}") == "edge"


def test_one_that_says_nothing_is_waited_for_a_few_seconds() -> None:
    with RawServer(lambda request, connection: time.sleep(6)) as api:
        began = time.monotonic()
        assert look(f"http://127.0.0.1:{api.port}") == "gateway"
        assert time.monotonic() - began < 5.5
