"""Names of models as the product publishes them: several for one engine, which knows its own only.

Through the product's own client, on the real gateway.
"""

import re
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from inference import gateway as product
from inference.deployment import Deployment
from tests.gateway.client import ROUTES, Gateway, Member
from tests.gateway.test_usage import wait_for


@pytest.fixture
def client(gateway_url: str, master_key: str) -> Iterator[product.Gateway]:
    found = product.Gateway(gateway_url, master_key, site="x")
    yield found
    found.close()


@pytest.fixture
def names(client: product.Gateway, engine: str) -> Iterator[list[Deployment]]:
    """An old, a new and a stable one, all of them one engine's."""
    prefix = f"test-{uuid.uuid4().hex[:8]}"
    made = [deployment(f"{prefix}-{each}", engine) for each in ("stable", "new", "old")]
    for each in made:
        client.put_deployment(each)
    yield made
    for each in made:
        client.remove_deployment(each.id)


def deployment(name: str, engine: str) -> Deployment:
    return Deployment(
        id=f"name:{name}",
        name=name,
        engine_name="fake-plain",
        api_base=f"{engine}/v1",
        mode="chat",
        max_input_tokens=30_000,
        max_output_tokens=3_000,
        site="https://test",
    )


def test_s11_every_name_answers_on_every_route_as_it_was_called(
    alice: Member, names: list[Deployment]
) -> None:
    """Plain and streamed. The engine itself always says `fake-plain`."""
    said = {}
    for each in names:
        for route in ROUTES:
            for stream in (False, True):
                more = {"stream": True} if stream else {}
                answer = alice.call(route, each.name, **more)
                models = set(re.findall(r'"model": ?"([^"]*)"', answer.text))
                said[each.name, route, stream] = (answer.status_code, models)
    assert said == {called: (200, {called[0]}) for called in said}


def test_s11_usage_is_counted_under_the_name_that_was_called(
    gateway: Gateway, names: list[Deployment]
) -> None:
    with gateway.member() as bob:
        for number, each in enumerate(names, start=1):
            for route in ROUTES[:number]:
                bob.call(route, each.name)
                bob.call(route, each.name, stream=True)
        found = wait_for(gateway, bob.token, requests=12)
    counted = {name: metrics["successful_requests"] for name, metrics in found.items()}
    assert counted == {each.name: 2 * n for n, each in enumerate(names, start=1)}


def test_the_list_of_models_says_what_each_can_take(alice: Member, names: list[Deployment]) -> None:
    listed = {model["id"]: model for model in alice.get("/v1/models").json()["data"]}
    for each in names:
        limits = listed[each.name]["max_input_tokens"], listed[each.name]["max_output_tokens"]
        assert limits == (30_000, 3_000)
        assert "https://test" not in str(listed[each.name])


def test_s5_a_change_cuts_nothing_and_holds_for_keys_that_are_there(
    gateway: Gateway, client: product.Gateway, names: list[Deployment]
) -> None:
    """As a swap does: the limits change while members call."""
    statuses, done = [], threading.Event()
    with gateway.member(rpm_limit=100_000) as bob:

        def call() -> None:
            while not done.is_set():
                statuses.append(bob.chat(names[0].name).status_code)

        callers = [threading.Thread(target=call) for _ in range(3)]
        for caller in callers:
            caller.start()
        for context in range(20_000, 20_010):
            client.put_deployment(replace(names[0], max_input_tokens=context))
        done.set()
        for caller in callers:
            caller.join()
    assert len(statuses) > 10
    assert set(statuses) == {200}
    found = [each.max_input_tokens for each in client.deployments() if each.id == names[0].id]
    assert found == [20_009]


def test_a_removed_name_is_refused(
    alice: Member, client: product.Gateway, names: list[Deployment]
) -> None:
    client.remove_deployment(names[2].id)
    assert alice.chat(names[2].name).status_code == 400
    assert alice.chat(names[0].name).status_code == 200
