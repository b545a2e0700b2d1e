"""Faults while keys are being made. After each: one live key a person, none twice, none stuck."""

import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from tests.api import ApiClient, GatewayAdmin
from tests.journeys.conftest import MAKING, TRYING
from tests.stack import Stack
from tests.visitor import Visitor, ask_for_keys, members
from tests.waiting import at_once, wait_until

LOST_WITH_REDIS = "This key was never shown, and it can't be shown any more."
TRIED: list[Visitor] = []
"""Everybody of this file, looked at once more at its end."""


@pytest.fixture
def people(stack: Stack) -> Callable[[int], list[Visitor]]:
    def make(count: int) -> list[Visitor]:
        made = members(stack, count)
        TRIED.extend(made)
        return made

    return make


def get_keys(stack: Stack, people: Sequence[Visitor], *, seconds: float = 60) -> list[str]:
    """Waits for all of them, shows each; every one answers."""
    began = time.monotonic()
    keys = [p.reveal(seconds=max(5, seconds - (time.monotonic() - began))) for p in people]
    for key in keys:
        assert ApiClient(stack.api, key).models().status_code == 200
    return keys


def expect_one_key_each(stack: Stack, gateway: GatewayAdmin, people: Sequence[Visitor]) -> None:
    """At the gateway and in our rows, and both mean the same one."""
    owners = [person.public_id for person in people]
    theirs = sorted(
        (row["user_id"], row["key_alias"], row["token"]) for row in gateway.rows(*owners)
    )
    assert [owner for owner, _, _ in theirs] == sorted(owners)
    ours = stack.python(
        "import sys\nfrom inference.models import Key\n"
        "for key in Key.objects.live().filter(holder__in=sys.argv[1:]):\n"
        "    print(key.holder_id, key.pk, key.token, key.state)",
        *owners,
    )
    assert sorted(ours.splitlines()) == [f"{' '.join(row)} active" for row in theirs]


def test_gateway_killed_and_away(
    stack: Stack, gateway: GatewayAdmin, people: Callable[[int], list[Visitor]]
) -> None:
    """Some ask while it dies, some while it is away; it comes back by itself."""
    early, late = people(6), people(2)
    at_once(
        [
            *(partial(person.post, "/key/create") for person in early),
            partial(after, 0.3, partial(stack.crash, "gateway")),
        ]
    )
    with stack.down("gateway"):
        ask_for_keys(late)
        for person in late:
            assert MAKING in person.until(TRYING, seconds=30)
    get_keys(stack, [*early, *late])
    expect_one_key_each(stack, gateway, [*early, *late])


def test_gateway_answers_too_late(
    stack: Stack, gateway: GatewayAdmin, lost_answers: list[tuple[Visitor, str]]
) -> None:
    asked = [person for person, _ in lost_answers]
    TRIED.extend(asked)
    for _, key in lost_answers:
        assert ApiClient(stack.api, key).models().status_code == 200
    expect_one_key_each(stack, gateway, asked)


def after(seconds: float, call: Callable[[], None]) -> None:
    time.sleep(seconds)
    call()


def test_redis_killed_twice(
    stack: Stack, gateway: GatewayAdmin, people: Callable[[int], list[Visitor]]
) -> None:
    """What waited to be shown may be lost with it; then she is told, and replaces the key."""
    asking = people(8)
    for some in (asking[:4], asking[4:]):
        at_once(
            [
                *(partial(person.post, "/key/create") for person in some),
                partial(after, 0.2, partial(stack.crash, "valkey")),
            ]
        )
        stack.wait_ready("valkey")
    for person in asking:
        made = wait_until(
            lambda p=person: re.search(f"Show my key|{LOST_WITH_REDIS}", unescaped(p)),
            seconds=60,
            what="a key that can be shown or replaced",
        )
        if made[0] == LOST_WITH_REDIS:
            person.post("/key/rotate", {"at_once": "1"})
    get_keys(stack, asking)
    wait_until(
        lambda: len(gateway.rows(*(p.public_id for p in asking))) == len(asking),
        seconds=60,
        what="the replaced keys to be deleted",
    )
    expect_one_key_each(stack, gateway, asking)


def unescaped(person: Visitor) -> str:
    return person.get("/key/").replace("&#x27;", "'")


def test_worker_killed_at_any_moment(
    stack: Stack, gateway: GatewayAdmin, people: Callable[[int], list[Visitor]]
) -> None:
    """What it was at waits for its lease to run out (40 s); the next worker looks first."""
    asking = people(20)
    chance = random.Random(20)
    done = threading.Event()

    def ask_in_turn() -> None:
        for person in asking:
            person.post("/key/create")
            time.sleep(chance.uniform(0, 0.8))
        done.set()

    thread = threading.Thread(target=ask_in_turn)
    thread.start()
    kills = 0
    while not done.is_set() or kills < 3:
        stack.wait_ready("worker-gateway")
        time.sleep(chance.uniform(0, 0.6))
        stack.crash("worker-gateway")
        kills += 1
    thread.join()
    get_keys(stack, asking, seconds=120)
    expect_one_key_each(stack, gateway, asking)


def test_ten_clicks_are_one_key_shown_once(
    stack: Stack, gateway: GatewayAdmin, people: Callable[[int], list[Visitor]]
) -> None:
    """K4; and of several who open it at once, one sees it."""
    person = people(1)[0]
    person.get("/key/")  # the page with the button: its cookie is the one that all clicks share
    answers = at_once([partial(person.post, "/key/create")] * 10)
    assert [answer.status_code for answer in answers] == [200] * 10
    person.until("Show my key")
    shown = at_once([partial(person.post, "/key/reveal")] * 5)
    keys = [found[0] for answer in shown if (found := re.search(r"sk-[\w-]{40,}", answer.text))]
    assert len(keys) == 1
    assert ApiClient(stack.api, keys[0]).call().status_code == 200
    assert keys[0] not in person.post("/key/reveal").text
    expect_one_key_each(stack, gateway, [person])


def test_a_message_delivered_many_times_is_one_key(
    stack: Stack, gateway: GatewayAdmin, people: Callable[[int], list[Visitor]]
) -> None:
    """K4: ten of the same wait for the worker, whose threads take them side by side."""
    asking = people(2)
    with stack.frozen("worker-gateway"):
        ask_for_keys(asking)
        stack.python(
            "from inference.tasks import gateway_advance_keys, gateway_reconcile_keys\n"
            "for _ in range(10):\n"
            "    gateway_advance_keys.delay()\n"
            "gateway_reconcile_keys.delay()\n"
            "gateway_reconcile_keys.delay()"
        )
    get_keys(stack, asking)
    expect_one_key_each(stack, gateway, asking)


def test_later_still_everybody_has_one_key(stack: Stack, gateway: GatewayAdmin) -> None:
    """Nothing that was given up came to life afterwards, and nothing was taken from anybody."""
    assert len(TRIED) > 40, "this one needs those before it"
    expect_one_key_each(stack, gateway, TRIED)
    for person in TRIED:
        assert "active" in person.get("/key/")
