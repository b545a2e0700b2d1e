"""The status page of the whole product: what runs, and what it says when parts are away (S16)."""

import threading
import time
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


def api(stack: Stack) -> dict[str, Any]:
    """The way to all models, as the page has it, with the incident about it."""
    found: dict[str, Any] = httpx.get(f"{stack.site}/status.json", timeout=20).json()["api"]
    return found


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


def test_requests_that_nobody_answers_are_an_incident_though_models_run(
    stack: Stack, fleet: Fleet
) -> None:
    fleet.settle()
    wait_until(lambda: api(stack)["state"] == "up", seconds=SOON, what="the API to answer")
    with stack.down("gateway"):
        wait_until(
            lambda: api(stack)["state"] == "gateway", seconds=SOON, what="the page to say so"
        )
        assert "Requests are not answered: the gateway is down." in page(stack)
        assert look(stack)["state"] == "up"
        wait_until(lambda: api(stack)["incident"], seconds=2 * SOON, what="the incident")
        assert "api_down" in fleet.alerts()
        feed = httpx.get(f"{stack.site}/status.atom?language=en", timeout=20).text
        assert "API: requests are not answered" in feed
    wait_until(lambda: api(stack)["state"] == "up", seconds=SOON, what="the page to say up again")


def test_many_who_wait_for_the_database_hold_up_no_status_page(stack: Stack, fleet: Fleet) -> None:
    fleet.settle()
    page(stack)
    statuses: list[int] = []

    def wait_for_a_page(path: str) -> None:
        session = {"session": "x" * 32}
        statuses.append(httpx.get(f"{stack.site}{path}", cookies=session, timeout=60).status_code)

    with stack.down("postgres"):
        waiting = [
            threading.Thread(target=wait_for_a_page, args=[path]) for path in ["/", "/key/"] * 20
        ]
        for thread in waiting:
            thread.start()
        for _look in range(10):
            began = time.monotonic()
            assert "Status" in page(stack)
            assert time.monotonic() - began < 2  # the machine is busy with the others
        for thread in waiting:
            thread.join()
    assert statuses == [503] * 40
