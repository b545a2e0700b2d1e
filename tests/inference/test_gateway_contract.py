"""The same assertions against the fake and, when NAN_TEST_GATEWAY_URL is set, the real LiteLLM."""

import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from inference.gateway import ALLOWED_ROUTES, Gateway, GatewayRefused, GatewayUnavailable, NewKey
from inference.limits import Limits
from tests.fakes.gateway import MASTER_KEY, FakeGateway, Manner

REAL = os.environ.get("NAN_TEST_GATEWAY_URL", "")
LIMITS = Limits(100, 5)


@pytest.fixture(params=["fake", "real"] if REAL else ["fake"])
def address(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    if request.param == "real":
        yield REAL, os.environ["LITELLM_MASTER_KEY"]
    else:
        with FakeGateway() as fake:
            yield fake.url, MASTER_KEY


@pytest.fixture
def site() -> str:
    """Of this test alone: what it leaves at a shared gateway is nobody else's."""
    return f"https://{uuid.uuid4()}.test"


@pytest.fixture
def gateway(address: tuple[str, str], site: str) -> Iterator[Gateway]:
    client = Gateway(*address, site=site)
    yield client
    for key in [key for key in client.all_keys() if key.site == site]:
        client.delete(key.token)
    client.close()


@pytest.fixture
def alias() -> str:
    return str(uuid.uuid4())


def create(gateway: Gateway, alias: str, limits: Limits = LIMITS) -> NewKey:
    new = NewKey.make()
    gateway.create(new=new, alias=alias, owner=str(uuid.uuid4()), limits=limits)
    return new


def test_k5_a_created_key_is_accepted_at_once(gateway: Gateway, alias: str) -> None:
    assert gateway.accepts(create(gateway, alias)) is True
    assert gateway.accepts(NewKey.make()) is False


def test_k8_block_unblock_and_delete_take_effect_at_once(gateway: Gateway, alias: str) -> None:
    """None of the calls is an Enterprise one."""
    new = create(gateway, alias)
    gateway.block(new.token)
    assert gateway.accepts(new) is False
    gateway.unblock(new.token)
    assert gateway.accepts(new) is True
    gateway.block(new.token)
    gateway.delete(new.token)
    assert (gateway.accepts(new), gateway.with_alias(alias)) == (False, [])


def test_every_change_may_be_repeated(gateway: Gateway, alias: str) -> None:
    new = create(gateway, alias)
    for _ in range(2):
        gateway.limit(new.token, Limits(20, 1))
        gateway.block(new.token)
    found = gateway.with_alias(alias)
    assert [(k.token, k.blocked, k.limits) for k in found] == [(new.token, True, Limits(20, 1))]
    gateway.unblock(new.token)
    gateway.unblock(new.token)
    assert [key.blocked for key in gateway.with_alias(alias)] == [False]
    gateway.delete(new.token)
    gateway.delete(new.token)


def test_what_is_listed_is_what_was_asked_for(gateway: Gateway, alias: str, site: str) -> None:
    new = create(gateway, alias, Limits(80, 4))
    [found] = gateway.with_alias(alias)
    assert (found.token, found.alias, found.site) == (new.token, alias, site)
    assert (found.blocked, found.limits) == (False, Limits(80, 4))
    assert abs((datetime.now(UTC) - found.created_at).total_seconds()) < 60


def test_all_pages_are_read(gateway: Gateway, site: str) -> None:
    made = {create(gateway, str(uuid.uuid4())).token for _ in range(103)}
    assert {key.token for key in gateway.all_keys() if key.site == site} == made


def test_an_alias_is_used_once_and_free_after_deletion(gateway: Gateway, alias: str) -> None:
    first = create(gateway, alias)
    with pytest.raises(GatewayRefused) as refused:
        create(gateway, alias)
    assert refused.value.code == "alias_taken"
    gateway.delete(first.token)
    assert gateway.accepts(create(gateway, alias)) is True


@pytest.mark.parametrize("call", ["block", "unblock"])
def test_a_key_that_is_not_there_is_refused(gateway: Gateway, call: str) -> None:
    with pytest.raises(GatewayRefused) as refused:
        getattr(gateway, call)(NewKey.make().token)
    assert refused.value.code == "not_found"
    with pytest.raises(GatewayRefused) as refused:
        gateway.limit(NewKey.make().token, LIMITS)
    assert refused.value.code == "not_found"


def test_a_bad_value_is_refused_without_its_words(gateway: Gateway, alias: str) -> None:
    with pytest.raises(GatewayRefused) as refused:
        gateway.create(new=NewKey("bad-value-of-a-key"), alias=alias, owner="x", limits=LIMITS)
    assert (refused.value.code, str(refused.value)) == ("refused", "refused")


def test_a_wrong_master_key_is_passing(address: tuple[str, str], alias: str) -> None:
    gateway = Gateway(address[0], "sk-not-the-master-key-0000", site="x")
    with pytest.raises(GatewayUnavailable) as unavailable:
        create(gateway, alias)
    assert (unavailable.value.code, unavailable.value.maybe_done) == ("not_admitted", False)


def test_l6_no_token_limit_budget_or_expiry_and_only_inference_routes(
    gateway: Gateway, address: tuple[str, str], alias: str
) -> None:
    create(gateway, alias)
    answer = httpx.get(
        f"{address[0]}/key/list",
        params={"key_alias": alias, "return_full_object": "true"},
        headers={"Authorization": f"Bearer {address[1]}"},
    )
    [row] = answer.json()["keys"]
    unlimited = ("tpm_limit", "max_budget", "budget_duration", "expires")
    assert {name: row[name] for name in unlimited} == dict.fromkeys(unlimited)
    assert row["allowed_routes"] == ALLOWED_ROUTES


def test_l4_a_key_can_not_make_keys_or_read_others(
    gateway: Gateway, address: tuple[str, str], alias: str
) -> None:
    new = create(gateway, alias)
    headers = {"Authorization": f"Bearer {new.value}"}
    made = httpx.post(f"{address[0]}/key/generate", json={}, headers=headers)
    read = httpx.get(f"{address[0]}/key/list", headers=headers)
    assert (made.status_code, read.status_code) == (403, 403)


def test_use_can_be_read(gateway: Gateway) -> None:
    assert isinstance(gateway.tokens_used_on(datetime.now(UTC).date()), set)


# -- Bad manners: the fake only -------------------------------------------------------------------

FAULTS = [
    (Manner.FAIL, "server_error", True),
    (Manner.ACT_THEN_DROP, "broken_off", True),
    (Manner.HANG, "timeout", True),
    (Manner.GARBAGE, "unreadable", True),
    (Manner.MIX_UP, "unreadable", True),
]


@pytest.mark.parametrize(("manner", "code", "maybe_done"), FAULTS)
def test_faults_have_codes(manner: Manner, code: str, maybe_done: bool, alias: str) -> None:
    with FakeGateway() as fake:
        gateway = Gateway(fake.url, MASTER_KEY, site="x", timeout=httpx.Timeout(0.3))
        fake.misbehave("/key/generate", manner)
        with pytest.raises(GatewayUnavailable) as unavailable:
            create(gateway, alias)
        assert (unavailable.value.code, unavailable.value.maybe_done) == (code, maybe_done)
        assert fake.paths().count("/key/generate") == 1


def test_a_gateway_that_is_down_did_nothing(alias: str) -> None:
    with FakeGateway() as fake:
        gateway = Gateway(fake.url, MASTER_KEY, site="x")
    with pytest.raises(GatewayUnavailable) as unavailable:
        create(gateway, alias)
    assert (unavailable.value.code, unavailable.value.maybe_done) == ("unreachable", False)


def test_a_broken_connection_is_repeated_where_that_is_harmless(alias: str) -> None:
    with FakeGateway() as fake:
        gateway = Gateway(fake.url, MASTER_KEY, site="x")
        new = create(gateway, alias)
        fake.misbehave("/key/block", Manner.ACT_THEN_DROP)
        gateway.block(new.token)
        assert fake.paths().count("/key/block") == 2
        fake.misbehave("/key/block", Manner.ACT_THEN_DROP, Manner.ACT_THEN_DROP)
        with pytest.raises(GatewayUnavailable) as unavailable:
            gateway.block(new.token)
        assert unavailable.value.code == "broken_off"


def test_the_value_of_a_key_is_in_no_representation() -> None:
    new = NewKey.make()
    assert new.value not in f"{new!r} {new} {[new]}"
