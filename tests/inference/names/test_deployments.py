"""The client of the gateway's model list: the same assertions against the fake and, when
NAN_TEST_GATEWAY_URL is set, the real LiteLLM. tests/gateway/test_names.py has what only calls
through it can show."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from inference.deployment import Deployment
from inference.gateway import Gateway, GatewayUnavailable
from tests.fakes.gateway import MASTER_KEY, FakeGateway, Manner

REAL = os.environ.get("NAN_TEST_GATEWAY_URL", "")


@pytest.fixture(params=["fake", "real"] if REAL else ["fake"])
def gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    if request.param == "real":
        yield Gateway(REAL, os.environ["LITELLM_MASTER_KEY"], site="x")
    else:
        with FakeGateway() as fake:
            yield Gateway(fake.url, MASTER_KEY, site="x")


@pytest.fixture
def wanted(gateway: Gateway) -> Iterator[Deployment]:
    made = deployment(f"test-{uuid.uuid4().hex[:8]}")
    yield made
    gateway.remove_deployment(made.id)


def deployment(name: str) -> Deployment:
    return Deployment(
        id=f"name:{name}",
        name=name,
        engine_name="nan",
        api_base="http://127.0.0.1:9/nan/v1",
        mode="chat",
        max_input_tokens=1000,
        max_output_tokens=100,
        site="https://test",
    )


def found(gateway: Gateway, wanted: Deployment) -> list[Deployment]:
    return [each for each in gateway.deployments() if each.name == wanted.name]


def test_what_is_listed_is_what_was_put(gateway: Gateway, wanted: Deployment) -> None:
    gateway.put_deployment(wanted)
    assert found(gateway, wanted) == [wanted]


def test_putting_again_changes_everything_and_leaves_one(
    gateway: Gateway, wanted: Deployment
) -> None:
    gateway.put_deployment(wanted)
    changed = replace(
        wanted,
        engine_name="other",
        api_base="http://127.0.0.1:9/other/v1",
        mode="embedding",
        max_input_tokens=2000,
        max_output_tokens=200,
        site="https://other",
        timeout=5,
        stream_timeout=6,
    )
    for _ in range(2):
        gateway.put_deployment(changed)
    assert found(gateway, wanted) == [changed]


def test_removing_again_is_harmless(gateway: Gateway, wanted: Deployment) -> None:
    gateway.put_deployment(wanted)
    for _ in range(2):
        gateway.remove_deployment(wanted.id)
    assert found(gateway, wanted) == []


def test_the_engines_key_is_nowhere(gateway: Gateway, wanted: Deployment) -> None:
    assert wanted.body()["litellm_params"]["api_key"] == "os.environ/ENGINE_API_KEY"


def test_a_lost_answer_to_a_first_put_is_made_good_by_the_next() -> None:
    with FakeGateway() as fake:
        gateway = Gateway(fake.url, MASTER_KEY, site="x")
        fake.misbehave("/model/new", Manner.ACT_THEN_DROP)
        with pytest.raises(GatewayUnavailable) as unavailable:
            gateway.put_deployment(deployment("nan"))
        assert (unavailable.value.code, unavailable.value.maybe_done) == ("broken_off", True)
        gateway.put_deployment(deployment("nan"))
        assert fake.models.names() == ["nan"]


def test_a_list_that_is_not_understood_is_passing() -> None:
    with FakeGateway() as fake:
        gateway = Gateway(fake.url, MASTER_KEY, site="x")
        fake.misbehave("/model/info", Manner.GARBAGE)
        with pytest.raises(GatewayUnavailable) as unavailable:
            gateway.deployments()
        assert unavailable.value.code == "unreadable"
