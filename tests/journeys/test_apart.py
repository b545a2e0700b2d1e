"""Stuck or large things in one place are not felt in another; nor is a secret known there."""

import base64
import json
import os
import time
from contextlib import ExitStack

import httpx
import psutil
import pytest

from tests.api import ROUTES, ApiClient, EngineCounts, payload
from tests.journeys.conftest import Client
from tests.stack import Stack
from tests.visitor import Visitor, confirmed

MIB = 1024 * 1024


def test_a_stuck_queue_does_not_delay_keys(stack: Stack, member: Visitor, client: Client) -> None:
    """P2: the workers of the other queues do nothing at all, and their queues are long."""
    stuck = ("worker-default", "worker-fleet")
    with ExitStack() as held:
        for part in stuck:
            held.enter_context(stack.frozen(part))
        stack.python(
            "from members.tasks import send_due_mails\n"
            "for _ in range(200):\n    send_due_mails.delay()"
        )
        applicant = confirmed(stack, 1)[0].apply()
        began = time.monotonic()
        applicant.be_let_in()
        key, other = member.create_key(seconds=10), applicant.create_key(seconds=10)
        assert time.monotonic() - began < 10
    assert client(key).call().status_code == 200
    assert client(other).call().status_code == 200


def test_an_8_mb_body_reaches_the_engine(
    stack: Stack, member: Visitor, engine: EngineCounts
) -> None:
    """P5: an image in a chat; and a text too long for the model, refused by the engine itself."""
    api = ApiClient(stack.api, member.create_key())
    image = base64.b64encode(os.urandom(6 * MIB)).decode()
    content = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
        {"type": "text", "text": " reply with exactly: seen"},
    ]
    body = {"model": "nan", "messages": [{"role": "user", "content": content}]}
    assert len(json.dumps(body)) > 8_000_000
    with engine.unwatched():
        before = engine.read()["routes"]["/v1/chat/completions"]["finished"]
        answer = post(api, ROUTES[0], body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["message"]["content"] == "seen"
        answer = api.call(text="word " * 1_650_000)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
        assert "maximum context length" in answer.json()["error"]["message"]
        assert engine.read()["routes"]["/v1/chat/completions"]["finished"] == before + 2


@pytest.mark.parametrize("route", ROUTES)
def test_a_body_above_32_mib_is_refused_in_json(stack: Stack, route: str) -> None:
    """P5, in the shape of the API that was called."""
    answer = post(ApiClient(stack.api, "sk-any"), route, payload(route, "x" * (33 * MIB)))
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/json")
    assert "larger than 32 MiB" in answer.json()["error"]["message"]
    assert ("type" in answer.json()) == (route == "/v1/messages")


def post(api: ApiClient, route: str, body: object) -> httpx.Response:
    return httpx.post(api.base + route, json=body, headers=api.headers, timeout=60)


def test_only_two_parts_know_the_master_key(stack: Stack) -> None:
    """In no environment and no command line of any other process of the product, engines among
    them, which are nobody's children."""
    secret = stack.secrets["litellm_master_key"]
    knowing, seen = set(), set()
    for process in psutil.process_iter():
        try:
            environment, line = process.environ(), " ".join(process.cmdline())
        except psutil.Error:
            continue
        if environment.get("NAN_STACK") != str(stack.state_dir):
            continue
        part = environment.get("NAN_PART", process.name())
        seen.add(part)
        assert secret not in line, part
        if "LITELLM_MASTER_KEY" in environment or secret in "".join(environment.values()):
            knowing.add(part)
    assert knowing == {"gateway", "worker-gateway"}
    assert {"web", "worker-default", "worker-fleet", "worker-gpu", "beat", "edge", "engine"} <= seen
