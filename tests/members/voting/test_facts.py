"""What is known of a proposed model: from the hub, whatever it answers, and from an admin."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.serializers import serialize
from django.utils import timezone
from pytest_django import Settings

from inference.models import Slot
from members.hub import Hub, HubProblem
from members.models import Proposal, User
from members.tasks import look_up_facts
from members.voting import compare, facts
from tests.fakes.card_hub import REVISION, CardHub, card_hub
from tests.members.voting.conftest import A
from tests.members.voting.test_proposals import propose
from tests.members.voting.test_rounds import code

pytestmark = pytest.mark.django_db


@pytest.fixture
def hub(settings: Settings) -> Iterator[CardHub]:
    with card_hub() as running:
        settings.HF_ENDPOINT = running.url
        yield running


def test_facts_come_from_the_hub(hub: CardHub, slot: Slot, voters: list[User]) -> None:
    config = {"max_position_embeddings": 262_144, "vision_config": {"depth": 1}}
    hub.add(
        A,
        config=config,
        template="{% if tools %}<think>{% endif %}",
        safetensors={"total": 7_600_000_000},
        cardData={"license": "apache-2.0", "language": ["en", "es"]},
    )
    row = propose(voters[0], slot)
    look_up_facts()
    row.refresh_from_db()
    assert (row.facts_state, row.facts_error, row.facts_due_at) == ("known", "", None)
    assert row.facts == {
        "revision": REVISION,
        "config": config,
        "parameters": 7_600_000_000,
        "weights_bytes": 4_000_000_000,
        "licence": "apache-2.0",
        "context": 262_144,
        "languages": ["en", "es"],
        "capabilities": ["tools", "reasoning", "vision"],
    }
    look_up_facts()
    assert len([path for path in hub.calls if path.startswith("/api")]) == 1


def test_what_the_repository_does_not_say_an_admin_types(
    hub: CardHub, slot: Slot, voters: list[User], admin: User
) -> None:
    row = propose(voters[0], slot)
    look_up_facts()
    row.refresh_from_db()
    assert (row.facts_state, row.facts_error) == ("failed", "repo_missing")
    facts.type_in(proposal=row, actor=admin, context=32_768, licence="mit")
    assert row.facts == {"context": 32_768, "licence": "mit"}
    facts.type_in(proposal=row, actor=admin, licence="")
    assert row.facts == {"context": 32_768}
    for bad in ({"context": -1}, {"context": "x"}, {"nonsense": 1}, {"capabilities": ["magic"]},
                {"revision": "main"}, {"config": [1]}, {"parameters": True}):  # fmt: skip
        assert code(facts.type_in, proposal=row, actor=admin, **bad) == "bad_fact"


def test_a_hub_that_is_away_is_asked_again(
    slot: Slot, voters: list[User], settings: Settings
) -> None:
    settings.HF_ENDPOINT = "http://127.0.0.1:9"
    row = propose(voters[0], slot)
    for _attempt in range(len(facts.BACK_OFF)):
        row.refresh_from_db()
        assert row.facts_state == "due"
        Proposal.objects.update(facts_due_at=timezone.now())
        look_up_facts()
    row.refresh_from_db()
    assert (row.facts_state, row.facts_error) == ("due", "hub_unreachable")
    Proposal.objects.update(facts_due_at=timezone.now())
    look_up_facts()
    row.refresh_from_db()
    assert (row.facts_state, row.facts_due_at) == ("failed", None)
    facts.ask_again(proposal=row, actor=None)
    row.refresh_from_db()
    assert (row.facts_state, row.facts_attempts) == ("due", 0)


def test_a_worker_that_died_only_delays(hub: CardHub, slot: Slot, voters: list[User]) -> None:
    hub.add(A)
    row = propose(voters[0], slot)
    Proposal.objects.update(facts_due_at=timezone.now() + facts.LEASE)  # it held the row
    look_up_facts()
    assert hub.calls == []
    Proposal.objects.update(facts_due_at=timezone.now())
    look_up_facts()
    row.refresh_from_db()
    assert row.facts_state == "known"


INFO = f"/api/models/{A}"


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ((404, {}, b""), "repo_missing"),
        ((401, {}, b""), "repo_missing"),
        ((403, {}, b""), "repo_gated"),
        ((500, {}, b""), "hub_unreachable"),
        ((429, {}, b""), "hub_unreachable"),
        ((200, {}, b"<html>"), "hub_odd"),
        ((200, {}, b"[]"), "hub_odd"),
        ((200, {}, b'{"sha": "main"}'), "hub_odd"),
        ((200, {}, b"[" * 100_000), "hub_odd"),
        ((200, {}, b'{"tag": "\\u0000"}'), "hub_odd"),
        ((200, {}, b'{"sha": "%s"}' % (b"b" * 40) + b" " * (4 * 2**20)), "hub_odd"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "hub_odd"),
        ((302, {"Location": INFO}, b""), "hub_odd"),
        ((302, {}, b""), "hub_odd"),
    ],
)  # fmt: skip
def test_what_a_hub_may_answer(hub: CardHub, page: Any, says: str) -> None:
    hub.pages[INFO] = page
    with Hub(hub.url) as client, pytest.raises(HubProblem) as caught:
        client.repository(A)
    assert caught.value.code == says


def test_numbers_without_end_in_a_config_are_left_out(hub: CardHub) -> None:
    hub.add(A, config={"time_step_limit": [0.0, float("inf")], "vocab_size": 8})
    with Hub(hub.url) as client:
        assert client.repository(A).config == {"time_step_limit": [0.0, None], "vocab_size": 8}


def test_a_redirect_within_the_hub_is_followed(hub: CardHub) -> None:
    hub.add(A, config={"a": 1})
    path = f"/{A}/resolve/{REVISION}/config.json"
    hub.pages["/api/resolve-cache/x"] = hub.pages[path]
    hub.pages[path] = (307, {"Location": "/api/resolve-cache/x"}, b"")
    with Hub(hub.url) as client:
        assert client.repository(A).config == {"a": 1}


def test_a_hub_that_drips_is_left_in_time(hub: CardHub) -> None:
    hub.add(A)
    hub.drip = 0.02
    begun = time.monotonic()
    with Hub(hub.url, seconds=0.5) as client, pytest.raises(HubProblem) as caught:
        client.repository(A)
    assert caught.value.code == "hub_unreachable"
    assert time.monotonic() - begun < 2


# -- Repositories that ask for a consent --------------------------------------------------------
TOKEN = "hf_of-an-account-that-has-agreed"


@pytest.fixture
def gated(hub: CardHub, slot: Slot, voters: list[User]) -> Proposal:
    hub.gate = TOKEN
    hub.add(
        A, config={"max_position_embeddings": 8192}, gated="manual", cardData={"license": "mit"}
    )
    return propose(voters[0], slot)


def test_without_a_token_a_gated_one_says_what_its_page_says(gated: Proposal) -> None:
    look_up_facts()
    gated.refresh_from_db()
    assert (gated.facts_state, gated.facts_error) == ("known", "files_gated")
    assert gated.facts == {
        "revision": REVISION, "weights_bytes": 4_000_000_000, "licence": "mit", "gated": True,
    }  # fmt: skip
    assert "set HF_TOKEN" in facts.words(gated.facts_error)


def test_with_a_token_its_files_are_read_and_the_token_is_told_nowhere(
    gated: Proposal, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even by the HTTP client's own log at its most talkative."""
    settings.HF_TOKEN = TOKEN
    for name in ("", "httpx", "httpcore"):
        caplog.set_level("DEBUG", logger=name or None)
    look_up_facts()
    gated.refresh_from_db()
    assert (gated.facts_error, gated.facts["context"]) == ("", 8192)
    assert "config.json" in caplog.text
    assert TOKEN not in caplog.text
    assert TOKEN not in serialize("json", [gated])


def test_a_token_that_is_over_is_named(gated: Proposal, settings: Settings) -> None:
    settings.HF_TOKEN = "hf_old"
    look_up_facts()
    gated.refresh_from_db()
    assert (gated.facts_state, gated.facts_error) == ("failed", "token_refused")
    assert "hf_old" not in serialize("json", [gated])


def test_the_token_goes_to_no_other_host(hub: CardHub) -> None:
    with card_hub() as other:
        hub.gate = TOKEN
        hub.pages[INFO] = (302, {"Location": f"{other.url}{INFO}"}, b"")
        with Hub(hub.url, token=TOKEN) as client, pytest.raises(HubProblem) as caught:
            client.repository(A)
        assert (caught.value.code, other.calls) == ("hub_odd", [])


@pytest.mark.parametrize(
    "info",
    [
        {"cardData": "x", "safetensors": [], "siblings": "x", "tags": None},
        {"cardData": {"license": ["mit"], "language": 3}, "safetensors": {"total": -1}},
        {"siblings": [None, {"rfilename": None, "size": "big"}]},
        {"gguf": {"total": 2**80}, "cardData": {"license": "other", "license_name": "x" * 500}},
    ],
)
def test_odd_cards_do_no_harm(hub: CardHub, slot: Slot, voters: list[User], info: Any) -> None:
    hub.add(A, config={"text_config": "x", "vision_config": 7}, **info)
    row = propose(voters[0], slot)
    look_up_facts()
    row.refresh_from_db()
    assert row.facts_state == "known"
    assert len(row.facts.get("licence", "")) <= 60
    compare.of_proposal(row)
