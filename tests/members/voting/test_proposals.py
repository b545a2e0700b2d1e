"""Proposing, seconding, vetting; facts from the hub; what is said beside the current model."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from inference.fit.weights import active_bytes
from inference.models import CatalogModel, Replica, Server, Slot
from members import letters
from members.hub import Hub, HubProblem
from members.models import Mail, Proposal, Second, User, Vote
from members.tasks import look_up_facts
from members.voting import compare, facts, proposals, rounds, shortlist
from members.voting.proposals import Duplicate
from members.voting.refusals import Refused
from tests.fakes.card_hub import REVISION, CardHub, card_hub
from tests.inference import fit
from tests.members.voting.conftest import A, B, in_days, proposal_of
from tests.members.voting.test_ballots import at_once
from tests.members.voting.test_rounds import code
from tests.people import person

pytestmark = pytest.mark.django_db
CONFIGS = json.loads((Path(fit.__file__).parent / "configs.json").read_text())


@pytest.fixture
def hub(settings: Settings) -> Iterator[CardHub]:
    with card_hub() as running:
        settings.HF_ENDPOINT = running.url
        yield running


def propose(user: User, slot: Slot, repo: str = A) -> Proposal:
    return proposals.propose(user=user, slot=slot, repo=repo, reason="It is good.")


# -- Proposing ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "typed",
    [
        "acme/alpha-7B",
        " https://huggingface.co/acme/alpha-7B ",
        "huggingface.co/acme/alpha-7B/tree/main?x=1#y",
        "https://hf.co/acme/alpha-7B/",
    ],
)
def test_an_address_is_as_good_as_a_name(typed: str) -> None:
    assert proposals.parse_repo(typed) == A


@pytest.mark.parametrize(
    "typed", ["", "alpha", "../etc/passwd", "a/..", "https://example.org/a/b", "a b/c", "a/b>c"]
)
def test_what_is_no_repository(typed: str) -> None:
    assert code(proposals.parse_repo, text=typed) == "bad_repo"


def test_who_may_propose_what(slot: Slot, voters: list[User], waiting: Any) -> None:
    asked = {"slot": slot, "repo": A, "reason": "x"}
    assert code(proposals.propose, user=waiting.user, **asked) == "not_member"
    assert code(proposals.propose, user=person("Otto"), **asked) == "not_member"
    assert code(proposals.propose, user=voters[0], **{**asked, "reason": " "}) == "no_reason"
    running = {**asked, "repo": "ORG/now-one"}
    assert code(proposals.propose, user=voters[0], **running) == "runs_now"


def test_a_duplicate_leads_to_the_first(slot: Slot, voters: list[User]) -> None:
    first = propose(voters[0], slot)
    with pytest.raises(Duplicate) as caught:
        propose(voters[1], slot, A.upper())
    assert caught.value.proposal == first


@pytest.mark.parametrize(
    "repo",
    ["other/Alpha-7B-FP8", "acme/alpha-7b-instruct-AWQ", "x/alpha_7B-GGUF", "x/alpha-7B-2507"],
)
def test_nearly_the_same_is_pointed_out(slot: Slot, voters: list[User], repo: str) -> None:
    first = propose(voters[0], slot)
    propose(voters[0], slot, B)
    assert proposals.alike(slot=slot, repo=repo) == [first]
    assert proposals.alike(slot=slot, repo="x/alpha-70B") == []


@pytest.mark.django_db(transaction=True)
def test_at_most_three_open_ones_even_at_once(
    slot: Slot, voters: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a moment before it commits, so that without a lock all would count none."""
    monkeypatch.setattr(proposals, "enqueue", lambda task: time.sleep(0.1))

    def post(number: int) -> Any:
        def run() -> str:
            try:
                return propose(voters[0], slot, f"acme/m{number}").state
            except Refused as refusal:
                return refusal.code

        return run

    said = at_once([post(number) for number in range(8)])
    assert sorted(said) == ["open"] * 3 + ["too_many"] * 5
    proposals.withdraw(proposal=Proposal.objects.first(), user=voters[0])
    assert propose(voters[0], slot, "acme/more").state == "open"


def test_seconding(slot: Slot, voters: list[User]) -> None:
    first, other = propose(voters[0], slot), propose(voters[0], slot, B)
    assert code(proposals.second, proposal=first, user=voters[0]) == "own_proposal"
    assert code(proposals.second, proposal=first, user=person("Otto")) == "not_member"
    for _ in range(2):
        proposals.second(proposal=other, user=voters[1])
    assert Second.objects.count() == 1
    rows = list(proposals.listing(slot=slot, viewer=voters[1]))
    assert [(row.repo, row.seconds_count, row.seconded) for row in rows] == [
        (B, 1, True),
        (A, 0, False),
    ]
    proposals.unsecond(proposal=other, user=voters[1])
    assert Second.objects.count() == 0


def test_withdrawing(slot: Slot, voters: list[User]) -> None:
    row = propose(voters[0], slot)
    assert code(proposals.withdraw, proposal=row, user=voters[1]) == "not_yours"
    assert proposals.withdraw(proposal=row, user=voters[0]).state == "withdrawn"
    assert code(proposals.withdraw, proposal=row, user=voters[0]) == "decided"
    assert code(proposals.second, proposal=row, user=voters[1]) == "decided"
    assert propose(voters[1], slot).state == "open"


# -- Vetting ------------------------------------------------------------------------------------
def test_declining_needs_a_reason_that_the_proposer_gets(
    slot: Slot, voters: list[User], admin: User
) -> None:
    row = propose(voters[0], slot)
    assert code(shortlist.decline, proposal=row, actor=admin, reason=" ") == "no_reason"
    shortlist.decline(proposal=row, actor=admin, reason="Too <big> & slow.")
    assert code(shortlist.decline, proposal=row, actor=admin, reason="x") == "decided"
    mail = Mail.objects.get(kind="proposal_declined")
    assert mail.to == "ana@example.org"
    assert "Too <big> & slow." in letters.compose(mail).body


def test_on_the_ballot_and_off_again(slot: Slot, voters: list[User], admin: User) -> None:
    row = propose(voters[0], slot)
    vote = rounds.prepare(slot=slot, slug="2026-Q4", actor=admin)
    option = shortlist.accept(proposal=row, vote=vote, actor=admin)
    assert code(shortlist.accept, proposal=row, vote=vote, actor=admin) == "decided"
    assert code(proposals.withdraw, proposal=row, user=voters[0]) == "decided"
    assert vote.codes == ["keep", A]
    shortlist.take_off(candidate=option, actor=admin)
    row.refresh_from_db()
    assert (vote.codes, row.state) == (["keep"], "open")


def test_what_was_voted_on_is_no_longer_open(vote: Vote, over: Any) -> None:
    over(vote)
    assert set(Proposal.objects.values_list("state", flat=True)) == {"voted"}


# -- Facts --------------------------------------------------------------------------------------
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


# -- Beside the current model -------------------------------------------------------------------
def named(part: str) -> dict[str, Any]:
    entry = next(found for name, found in CONFIGS.items() if part in name)
    return dict(entry.get("config", entry))


def test_fit_and_loss_beside_the_current_model(
    slot: Slot, replica: Replica, voters: list[User], running: CatalogModel
) -> None:
    config = dict(named("Qwen"))
    row = propose(voters[0], slot)
    row.looked_up = {
        "config": config, "weights_bytes": 8 * 2**30, "context": 65_536, "licence": "mit",
        "capabilities": ["reasoning", "tools"],
    }  # fmt: skip
    card = compare.of_proposal(row)
    assert (card.look.gained, card.look.lost) == (["reasoning"], ["vision"])
    assert (card.look.context_before, card.look.context_after) == (100_000, 65_536)
    [fit] = card.look.fits
    assert (fit.server, fit.gpus, fit.replicas, fit.fits) == ("gpu-9", 1, 1, True)
    assert fit.at_32k is not None
    assert fit.at_32k > 0
    assert card.at_128k == fit.at_128k == 0  # longer than its context
    assert card.fits is True
    assert card.licence_words == "Free for any use, also commercial."
    assert "Images in requests would be refused." in card.clients
    assert fit.notes_words[0].startswith("This is an estimate")


def test_too_big_a_model_does_not_fit(slot: Slot, replica: Replica, voters: list[User]) -> None:
    row = propose(voters[0], slot)
    row.looked_up = {"config": named("Qwen"), "weights_bytes": 200 * 2**30, "context": 262_144}
    card = compare.of_proposal(row)
    assert (card.fits, card.at_32k, card.at_128k) == (False, 0, 0)


def test_what_is_not_known_is_said(slot: Slot, replica: Replica, voters: list[User]) -> None:
    card = compare.of_proposal(propose(voters[0], slot))
    assert (card.fits, card.at_32k, card.look.speed) == (None, None, "")
    Server.objects.update(gpus=[])
    assert compare.of_proposal(proposal_of(A)).fits is None


def test_speed_follows_what_is_read_for_each_token(
    slot: Slot, replica: Replica, voters: list[User], running: CatalogModel
) -> None:
    running.config, running.weights_mib = named("Qwen"), 60_000
    running.save()
    slot.refresh_from_db()
    row = propose(voters[0], slot)
    seen = []
    for mib in (20_000, 60_000, 120_000):
        row.looked_up = {"config": named("Qwen"), "weights_bytes": mib * 2**20}
        seen.append(compare.of_proposal(row).look.speed)
    assert seen == ["faster", "similar", "slower"]


def test_experts_that_rest_are_not_read() -> None:
    for name, entry in CONFIGS.items():
        config = entry.get("config", entry)
        text = config.get("text_config") or config
        active = active_bytes(config, 10**12)
        if text.get("num_experts_per_tok"):
            assert active is not None, name
            assert active < 0.6 * 10**12, name
        elif active is not None:
            assert active == 10**12, name


def test_the_ballot_keeps_what_was_said(prepared: Vote, replica: Replica, admin: User) -> None:
    Proposal.objects.filter(repo=A).update(
        looked_up={"config": named("Qwen"), "weights_bytes": 8 * 2**30, "context": 131_072}
    )
    shown = compare.cards(prepared)
    vote = rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(1))
    assert [card.look for card in compare.cards(vote)] == [card.look for card in shown]
    assert shown[1].look.fits[0].fits is True
