"""Proposing, seconding, vetting."""

import time
from typing import Any

import pytest

from inference.models import Slot
from members import letters
from members.models import Mail, Proposal, Second, User, Vote
from members.voting import proposals, rounds, shortlist
from members.voting.proposals import Duplicate
from members.voting.refusals import Refused
from tests.members.voting.conftest import A, B
from tests.members.voting.test_rounds import code
from tests.people import person
from tests.waiting import at_once

pytestmark = pytest.mark.django_db


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
    "typed",
    ["", "alpha", "../etc/passwd", "a/..", "https://example.org/a/b", "a b/c", "a/b>c", "a/b/c",
     "https://huggingface.co/a/b/c"],
)  # fmt: skip
def test_what_is_no_repository(typed: str) -> None:
    assert code(proposals.parse_repo, text=typed) == "bad_repo"


@pytest.mark.parametrize(
    "typed", ["huggingface.co/datasets/foo/bar", "https://hf.co/spaces/a/b", "datasets/foo"]
)
def test_what_is_no_model_at_the_hub(typed: str) -> None:
    assert code(proposals.parse_repo, text=typed) == "not_a_model"


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
