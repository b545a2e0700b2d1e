"""Proposals as admins vet them: facts with their bounds, one source of figures, on or off."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from inference.models import CatalogModel, Replica
from members.models import Mail, Proposal, User, Vote
from members.voting import proposals, rounds
from tests.members.voting.conftest import A
from tests.members.voting.pages.conftest import text
from tests.members.voting.pages.test_ratify_pages import catalogued
from tests.members.voting.pages.test_staff_vote_pages import PAGE, act
from tests.members.voting.test_compare import named

pytestmark = pytest.mark.django_db


@pytest.fixture
def proposal(slot: Any, voters: list[User]) -> Proposal:
    return proposals.propose(user=voters[0], slot=slot, repo=A, reason="Try it.")


def test_accept_from_the_proposal(proposal: Proposal, slot: Any, alma: Client) -> None:
    rounds.prepare(slot=slot, slug="2026-Q4", actor=None)
    path = f"/staff/proposals/{proposal.pk}/"
    for _ in range(2):
        assert alma.post(f"{path}accept/", {"vote": "2026-Q4"}).url == PAGE
    assert Vote.objects.get().candidates.count() == 2
    assert alma.post(f"{path}accept/", {"vote": "none"}).status_code == 404


def test_lists_to_choose_from_say_how_many_second(
    proposal: Proposal, slot: Any, voters: list[User], alma: Client
) -> None:
    rounds.prepare(slot=slot, slug="2026-Q4", actor=None)
    for address in ("/staff/votes/", PAGE):
        assert "Nobody seconds it yet" in alma.get(address).content.decode()
    for voter in voters[1:3]:
        proposals.second(proposal=proposal, user=voter)
    for address in ("/staff/votes/", PAGE):
        assert "2 members second it" in alma.get(address).content.decode()


def test_decline_with_a_reason_that_the_proposer_gets(proposal: Proposal, alma: Client) -> None:
    path = f"/staff/proposals/{proposal.pk}/decline/"
    assert alma.post(path, {"reason": " "}).status_code == 422
    for _ in range(2):
        alma.post(path, {"reason": "Too big."})
    proposal.refresh_from_db()
    assert (proposal.state, proposal.decision_reason) == ("declined", "Too big.")
    assert Mail.objects.filter(kind="proposal_declined").count() == 1


FACTS = {
    "parameters": "7600000000",
    "context": "131072",
    "weights_bytes": "15200000000",
    "licence": "apache-2.0",
    "capabilities": ["tools"],
    "languages": "es, ca",
    "config": '{"hidden_size": 8}',
}


def test_facts_are_typed_where_the_hub_says_nothing(proposal: Proposal, alma: Client) -> None:
    Proposal.objects.update(looked_up={"licence": "apache-2.0", "context": 40_960})
    path = f"/staff/proposals/{proposal.pk}/"
    said = text(alma.post(f"{path}facts/", FACTS, follow=True))
    assert "Free for any use, also commercial." in said
    proposal.refresh_from_db()
    assert proposal.typed == {
        "parameters": 7_600_000_000,
        "context": 131_072,
        "weights_bytes": 15_200_000_000,
        "capabilities": ["tools"],
        "languages": ["es", "ca"],
        "config": {"hidden_size": 8},
    }
    for wrong in (
        {"config": "{not json"},
        {"config": '{"a": "\\u0000"}'},
        {"config": '{"a": ' + "[" * 900 + "]" * 900 + "}"},
        {"config": '{"hidden_size": 1e9}'},
        {"config": "[1]"},
        {"parameters": "-1"},
        {"capabilities": ["magic"]},
    ):
        assert alma.post(f"{path}facts/", {**FACTS, **wrong}).status_code == 422


@pytest.mark.parametrize(
    ("fact", "typed", "says"),
    [
        ("parameters", "5", "From 1,000,000 to 10,000,000,000,000."),
        ("parameters", "7.6", "Type a whole number: digits only, without a unit."),
        ("parameters", "7.6 B", "Type a whole number: digits only, without a unit."),
        ("parameters", "9" * 29, "From 1,000,000 to 10,000,000,000,000."),
        ("active_parameters", "3", "From 1,000,000 to 10,000,000,000,000."),
        ("active_parameters", "8000000000", "no more parameters can be used than there are"),
        ("context", "128000k", "Type a whole number: digits only, without a unit."),
        ("context", "64", "From 128 to 100,000,000."),
        ("weights_bytes", "15", "From 1,048,576 to 100,000,000,000,000."),
        ("weights_bytes", "15200000", "Is one of them in another unit?"),
        ("revision", "main", "A commit is 40 characters of 0 to 9 and a to f."),
        ("languages", "es, Spanish", "Not a code of a language: Spanish."),
    ],
)
def test_a_fact_out_of_bounds_is_said_beside_it_and_what_was_typed_stays(
    proposal: Proposal, alma: Client, fact: str, typed: str, says: str
) -> None:
    path = f"/staff/proposals/{proposal.pk}/facts/"
    refused = alma.post(path, {**FACTS, fact: typed})
    assert refused.status_code == 422
    [said] = refused.context["facts_form"][fact].errors
    assert says in said
    assert refused.context["facts_form"]["licence"].value() == "apache-2.0"
    proposal.refresh_from_db()
    assert proposal.typed == {}


def test_facts_that_changed_meanwhile_are_not_typed_over(
    proposal: Proposal, alma: Client, bruno: Client
) -> None:
    page, path = f"/staff/proposals/{proposal.pk}/", f"/staff/proposals/{proposal.pk}/facts/"
    seen = re.search(r'name="seen" value="(\w+)"', alma.get(page).content.decode())
    assert seen
    bruno.post(path, {**FACTS, "context": "65536"})
    typed = {**FACTS, "context": "131072", "seen": seen[1]}
    answer = alma.post(path, typed)
    assert answer.status_code == 422
    assert "changed these facts after you had opened the page" in text(answer)
    proposal.refresh_from_db()
    assert proposal.typed["context"] == 65_536
    seen = re.search(r'name="seen" value="(\w+)"', answer.content.decode())
    assert seen
    again = {**typed, "seen": seen[1]}
    assert [alma.post(path, again).status_code for _ in range(2)] == [302, 302]  # a second click
    proposal.refresh_from_db()
    assert proposal.typed["context"] == 131_072


@pytest.mark.parametrize("typed", ["131072", "131.072", "131,072", "131 072", " 131072 "])
def test_digits_may_be_grouped(proposal: Proposal, alma: Client, typed: str) -> None:
    """A Spanish 131.000 is no hundred and thirty-one."""
    alma.post(f"/staff/proposals/{proposal.pk}/facts/", {**FACTS, "context": typed})
    proposal.refresh_from_db()
    assert proposal.typed["context"] == 131_072


def fit_of(page: str) -> str:
    """The line of the comparison: this model, then what runs now."""
    found = re.search("Members at once, 32k tokens each ([^A-Z]+)", page)
    return found[1].strip() if found else ""


def test_vetting_and_ballot_tell_one_fit_and_where_it_comes_from(
    proposal: Proposal, replica: Replica, alma: Client, bea: Client
) -> None:
    """The catalogue's, also where an admin has typed others before the entry was there."""
    config = named("Qwen")
    Proposal.objects.update(typed={"weights_bytes": 90 * 2**30, "languages": ["es"]})
    Proposal.objects.update(looked_up={"config": config, "context": 262_144})
    vetting, hers = f"/staff/proposals/{proposal.pk}/", f"/vote/proposals/{proposal.pk}/"
    before = [text(alma.get(vetting)), text(bea.get(hers))]
    for said in before:
        assert "Figures: from its repository on Hugging Face." in said
        assert "Typed by an admin: size of the weights, languages." in said
    catalogued(config=config, context_length=131_072)
    CatalogModel.objects.filter(name="alpha").update(weights_mib=8_000)
    vote = rounds.prepare(slot=proposal.slot, slug="2026-Q4", actor=None)
    act(alma, "add", proposal=proposal.pk)
    rounds.schedule(
        vote=vote, actor=None, opens_at=timezone.now() + timedelta(days=1),
        closes_at=timezone.now() + timedelta(days=3),
    )  # fmt: skip
    ballot = "/vote/2026-Q4/"
    planned = [text(alma.get(vetting)), text(bea.get(hers)), text(bea.get(ballot))]
    rounds.open_vote(vote=vote, actor=None)
    CatalogModel.objects.filter(name="alpha").update(weights_mib=30_000)
    opened = [text(alma.get(vetting)), text(bea.get(hers)), text(bea.get(ballot))]
    fits = {fit_of(said) for said in (*planned, *opened)}
    assert len(fits) == 1
    assert fits != {fit_of(before[0])}
    for said in (*planned, *opened):
        assert "Figures: from our catalogue (entry alpha)" in said
        assert "Typed by an admin: languages." in said
    fixed = ["as they were when the vote 2026-Q4 opened" in said for said in opened]
    assert fixed == [True, True, False]  # the ballot says so of all that stands on it
    assert "This repository is in the catalogue (alpha)." in planned[0]


def test_what_the_catalogue_says_is_not_typed_and_an_open_ballot_stands(
    proposal: Proposal, replica: Replica, alma: Client, voters: list[User]
) -> None:
    catalogued()
    path = f"/staff/proposals/{proposal.pk}/"
    fields = set(alma.get(path).context["facts_form"].fields)
    assert fields == {"parameters", "active_parameters", "languages"} | (
        set() if CatalogModel.objects.get(name="alpha").config else {"config"}
    )
    alma.post(f"{path}facts/", {"languages": "es, gl"})
    proposal.refresh_from_db()
    assert proposal.typed == {"languages": ["es", "gl"]}
    vote = rounds.prepare(slot=proposal.slot, slug="2026-Q4", actor=None)
    act(alma, "add", proposal=proposal.pk)
    rounds.open_vote(vote=vote, actor=None, closes_at=timezone.now() + timedelta(days=3))
    assert f"{path}facts/" not in alma.get(path).content.decode()
    said = text(alma.post(f"{path}facts/", {"languages": "de"}, follow=True))
    assert "options, rules and dates can't change any more" in said
    proposal.refresh_from_db()
    assert proposal.typed == {"languages": ["es", "gl"]}


def test_the_hub_is_asked_again(proposal: Proposal, alma: Client) -> None:
    Proposal.objects.update(facts_state="failed", facts_due_at=None, facts_error="hub_odd")
    path = f"/staff/proposals/{proposal.pk}/"
    assert "The hub's answer is not what we expect." in text(alma.get(path))
    alma.post(f"{path}again/")
    proposal.refresh_from_db()
    assert proposal.facts_state == "due"
