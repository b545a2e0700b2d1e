"""Our rows and the gateway's keys are compared, repaired, and the difference is told."""

import json
import re
import uuid

import httpx
import pytest

from tests.api import GatewayAdmin
from tests.journeys.conftest import Client
from tests.stack import Stack
from tests.visitor import Visitor, members
from tests.waiting import wait_until

LOST = "The gateway no longer has this key, so it stopped working."
MESSAGE = "from inference.tasks import gateway_reconcile_keys\ngateway_reconcile_keys.delay()"


def by_command(stack: Stack) -> dict[str, int]:
    return dict(json.loads(stack.manage("keys", "reconcile", "--json", gateway=True)))


def by_worker(stack: Stack) -> dict[str, int]:
    """As the beat asks for it every three minutes; what came of it, as Prometheus sees it."""
    before = metric(stack, "nan_key_reconciled_timestamp_seconds")
    stack.python(MESSAGE)
    wait_until(
        lambda: metric(stack, "nan_key_reconciled_timestamp_seconds") > before,
        seconds=30,
        what="the worker's comparison",
    )
    kinds = ("orphans", "spared", "missing", "differing")
    return {kind: int(metric(stack, f'nan_key_drift{{kind="{kind}"}}')) for kind in kinds}


def metric(stack: Stack, name: str) -> float:
    text = httpx.get(f"{stack.url('web')}/metrics", timeout=10).text
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("compare", [by_command, by_worker])
def test_every_difference_is_found_repaired_and_told(
    stack: Stack, gateway: GatewayAdmin, client: Client, compare: object
) -> None:
    assert callable(compare)
    lost, raised, blocked, paused = people = members(stack, 4)
    keys = [person.create_key() for person in people]
    paused.post("/key/pause")
    paused.until("The same key works again")
    wait_until(lambda: gateway.limits(paused.public_id) == [], seconds=30, what="the pause")
    compare(stack)

    orphan = gateway.make(key_alias=str(uuid.uuid4()), metadata={"site": stack.env["SITE_URL"]})
    foreign = gateway.make(key_alias=f"another installation's {uuid.uuid4()}")
    with stack.down("beat"):  # its own comparison, every three minutes, would be faster
        tokens = [gateway.rows(person.public_id)[0]["token"] for person in people]
        gateway.change("delete", keys=[tokens[0]])
        gateway.change("update", key=tokens[1], rpm_limit=5000, max_parallel_requests=50)
        gateway.change("block", key=tokens[2])
        gateway.change("unblock", key=tokens[3])
        found = compare(stack)
    assert {name: found[name] for name in ("orphans", "spared", "missing", "differing")} == {
        "orphans": 1,
        "spared": 0,
        "missing": 1,
        "differing": 3,
    }
    there = {row["token"] for row in gateway.rows()}
    assert orphan["token"] not in there
    assert foreign["token"] in there
    wait_until(
        lambda: (
            gateway.limits(raised.public_id) == [(100, 5)]
            and gateway.limits(blocked.public_id) == [(100, 5)]
            and gateway.limits(paused.public_id) == []
        ),
        seconds=30,
        what="limits and blocks to be as in our rows",
    )
    assert client(keys[2]).call().status_code == 200
    assert client(keys[3]).call().status_code == 401
    make_again(lost, client)
    again = compare(stack)
    assert [again[name] for name in ("orphans", "missing", "differing")] == [0, 0, 0]
    gateway.change("delete", keys=[foreign["token"]])


def make_again(person: Visitor, client: Client) -> None:
    """K5: she is told why, and the same page has the way out."""
    page = person.until(LOST, seconds=30)
    assert "no working key" in page
    assert "Try again" in page
    assert client(person.create_key()).call().status_code == 200
