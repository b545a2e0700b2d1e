"""The status page of the whole product: what runs, and what it says when parts are away (S16)."""

from typing import Any

import httpx

from tests.fleet import Fleet
from tests.stack import Stack
from tests.waiting import wait_until

SOON = 75
"""Seconds: a sample is taken every 30, and the page looks at the rows every 5."""


OLD = "This page is not current."


def look(stack: Stack, *, through: str = "") -> dict[str, Any]:
    """The first slot, as the web itself says, or through the edge; the session's value is none."""
    address = through or stack.url("web")
    host = stack.site.removeprefix("http://")
    answer = httpx.get(
        f"{address}/status.json", headers={"Host": host}, cookies={"session": "x" * 32}, timeout=20
    )
    assert answer.status_code == 200
    found = answer.json()
    return {**found["slots"][0], "current": found["current"]}


def page(stack: Stack) -> str:
    answer = httpx.get(f"{stack.site}/status/?language=en", timeout=20)
    assert answer.status_code == 200
    return answer.text


def test_what_the_page_says(stack: Stack, fleet: Fleet) -> None:
    fleet.settle()
    wait_until(lambda: look(stack)["state"] == "up", seconds=SOON, what="the page to say up")
    seen = look(stack, through=stack.site)
    (model,) = seen["serving"]
    assert (model["model"], model["engine"]) == (fleet.model(), "simulator")
    assert seen["replicas_up"] == seen["replicas_wanted"] == len(fleet.replicas())

    with stack.down("postgres"):
        wait_until(lambda: not look(stack)["current"], seconds=30, what="the page to be old")
        assert look(stack, through=stack.site)["serving"] == seen["serving"]
        wait_until(lambda: OLD in page(stack), seconds=30, what="the page to say so")
    wait_until(lambda: look(stack)["current"], seconds=30, what="the page to be current again")

    with stack.down("edge"):
        wait_until(lambda: look(stack)["state"] == "down", seconds=SOON, what="the page: down")
    wait_until(lambda: look(stack)["state"] == "up", seconds=SOON, what="the page to say up again")
