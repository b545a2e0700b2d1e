"""A swap between two real models on real vLLM, through the whole product and under load.

Only with CONTRACT_ENGINE=vllm (`make test-vllm`): the simulator's swaps are in tests/journeys.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.api import ROUTES, ApiClient, GatewayAdmin
from tests.fleet import Fleet
from tests.load import Load
from tests.ports import free_port
from tests.stack import ROOT, Stack
from tests.waiting import wait_until

START = 600  # seconds for two engines on two busy cores
DRAIN = 300  # an answer that is under way on them
BEFORE, DURING = 3, 9  # calls at least; about one in ten seconds where nothing else runs


@pytest.fixture(scope="module")
def real() -> Iterator[Fleet]:
    folder = Path(os.environ.get("NAN_TEST_STACK", ROOT / ".nan" / "test-stack")).with_name("real")
    stack = Stack(folder, extra={"ENGINE": "vllm"}, patience=START)
    stack.local("clean-data", "--yes")
    fleet = Fleet(stack.start())
    try:
        yield fleet
    finally:
        fleet.close()
        stack.stop()


@pytest.mark.timeout(3 * START)
def test_members_lose_nothing_when_real_models_change(real: Fleet) -> None:
    gateway = GatewayAdmin(real.stack)
    made = gateway.make(key_alias="load")
    key = str(made["key"])
    real.do(f"""
from inference.fleet import replicas
slot, server = Slot.objects.get(name="nan"), Server.objects.get(name="local")
made = replicas.add(slot=slot, server=server, gpus=[], port={free_port()}, actor=None)
replicas.put_in_service(replica=made, actor=None)
result = None""")
    real.settle(seconds=START)
    old, new = real.model(), real.other_model()
    with Load(real.stack.api, key, streams=2, tokens=8, pause=2) as load:
        wait_until(lambda: len(load.calls) >= BEFORE, seconds=DRAIN, what="answers of the old one")
        began = time.monotonic()
        planned = real.plan(new, drain_seconds=DRAIN)
        swap = real.until(planned, "done", "failed", seconds=2 * START)
        ended = time.monotonic()
        wait_until(lambda: load.since(ended), seconds=DRAIN, what="an answer of the new one")
    assert swap["state"] == "done", swap
    assert load.bad == []
    during = [call for call in load.since(began) if call.ended < ended]
    assert {(call.route, call.stream) for call in during} >= {(route, True) for route in ROUTES}
    assert len(during) > DURING
    assert [replica["model"] for replica in real.replicas()] == [new, new]
    assert real.ask(f"Measurement.objects.get(model__name={new!r}).kv_tokens") > 0
    for name in (old, new, "nan"):
        client = ApiClient(real.stack.api, key, model=name)
        assert [client.call(route).status_code for route in ROUTES] == [200] * 3
    listed = ApiClient(real.stack.api, key).models().json()["data"]
    assert {old, new, "nan"} <= {model["id"] for model in listed}
    expected = {old: 3, new: 3, "nan": len(load.calls) + 3}
    wait_until(
        lambda: counted(gateway, made["token"]) == expected, seconds=120, what="usage", every=2
    )


def counted(gateway: GatewayAdmin, token: str) -> dict[str, int]:
    """Calls that ended well, by the name that was called; a name whose calls used no token at all
    is left out. Of yesterday too: midnight may pass meanwhile."""
    today = datetime.now(UTC).date()
    query = f"start_date={today - timedelta(days=1)}&end_date={today}&api_key={token}"
    found: Counter[str] = Counter()
    for day in gateway.call("GET", f"/user/daily/activity?{query}")["results"]:
        for name, row in day["breakdown"]["model_groups"].items():
            if row["metrics"]["prompt_tokens"] and row["metrics"]["completion_tokens"]:
                found[name] += row["metrics"]["successful_requests"]
    return dict(found)
