"""A swap between two real models on real vLLM, through the whole product and under load.

Only with CONTRACT_ENGINE=vllm (`make test-vllm`): the simulator's swaps are in tests/journeys.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import ROUTES, ApiClient, GatewayAdmin
from tests.fleet import Fleet
from tests.load import Load
from tests.ports import free_port
from tests.stack import ROOT, Stack

START = 600  # seconds for two engines on two busy cores
DRAIN = 300  # an answer that is under way on them


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
    key = str(GatewayAdmin(real.stack).make(key_alias="load")["key"])
    real.do(f"""
from inference.fleet import replicas
slot, server = Slot.objects.get(name="nan"), Server.objects.get(name="local")
made = replicas.add(slot=slot, server=server, gpus=[], port={free_port()}, actor=None)
replicas.put_in_service(replica=made, actor=None)
result = None""")
    real.settle(seconds=START)
    old, new = real.model(), real.other_model()
    with Load(real.stack.api, key, streams=2, tokens=8, pause=2) as load:
        planned = real.plan(new, drain_seconds=DRAIN)
        swap = real.until(planned, "done", "failed", seconds=2 * START)
    assert swap["state"] == "done", swap
    assert load.bad == []
    assert {replica["model"] for replica in real.replicas()} == {new}
    measured = real.ask("[r.measured for r in Replica.objects.filter(slot__name='nan')]")
    assert all(found.get("kv_tokens", 1) > 0 for found in measured)
    for name in (old, new, "nan"):
        client = ApiClient(real.stack.api, key, model=name)
        assert [client.call(route).status_code for route in ROUTES] == [200] * 3
