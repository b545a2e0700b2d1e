"""Probes through the real edge, gateway and engines."""

import json
import time

import pytest

from tests.api import GatewayAdmin
from tests.stack import Stack
from tests.visitor import Visitor
from tests.waiting import wait_until

OWNER = "00000000-0000-4000-8000-70726f626573"


@pytest.fixture(scope="module")
def runs(stack: Stack) -> list[dict[str, str]]:
    said = stack.manage("probes", "run", "--wait", "240", "--json")
    return list(json.loads(said.splitlines()[-1]))


def test_every_call_works(stack: Stack, runs: list[dict[str, str]]) -> None:
    assert [(run["state"], run["failed"]) for run in runs] == [("done", ""), ("done", "")]
    rows = json.loads(stack.manage("probes", "show", "--json"))
    found = {row["call"]: row["code"] for row in rows}
    assert set(found.values()) == {""}
    assert {"chat", "messages", "responses_stream", "cancel", "count_tokens", "embedding"} <= set(
        found
    )


def test_pages_say_so(stack: Stack, runs: list[dict[str, str]]) -> None:
    reader = Visitor(stack).become_member()
    for page in ("claude-code", "opencode", "codex"):
        assert "calls answered" in reader.get(f"/docs/examples/{page}/")
    assert "runs now" in reader.get("/docs/examples/works/")


def test_no_key_is_left_and_no_usage(stack: Stack, runs: list[dict[str, str]]) -> None:
    admin = GatewayAdmin(stack)
    wait_until(lambda: not admin.rows(OWNER), seconds=30, what="the probes' key to be gone")
    time.sleep(25)  # one pull of usage
    count = f"print(Usage.objects.filter(holder='{OWNER}').count())"
    assert stack.python(f"from inference.models import Usage; {count}").strip() == "0"
