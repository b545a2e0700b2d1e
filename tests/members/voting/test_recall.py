"""A fifth of the members ask for it, and a rotation is voted on again."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from inference.models import CatalogModel, Replica, Slot, Swap, SwapState
from members import membership
from members.models import Membership, RecallSignature, User, Vote
from members.tasks import advance_votes
from members.voting import proposals, ratify, recall, rounds, shortlist
from tests.inference.names.conftest import model
from tests.members.voting.conftest import in_days, joined, with_options
from tests.members.voting.test_after import WORDS, cast
from tests.members.voting.test_rounds import code
from tests.people import person
from tests.waiting import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def rotated(slot: Slot, running: CatalogModel, voters: list[User]) -> Swap:
    """Yesterday another model came."""
    new = model("new-one")
    swap = Swap.objects.create(
        slot=slot, from_model=running, to_model=new, state=SwapState.DONE,
        finished_at=timezone.now() - timedelta(days=1),
    )  # fmt: skip
    slot.model = new
    slot.save()
    for number in range(6):
        joined(f"More{number}")
    return swap


def test_a_fifth_of_the_members_open_a_recall(rotated: Swap, voters: list[User]) -> None:
    first = recall.sign(swap=rotated, user=voters[0])
    assert (first.signed, first.needed, first.mine, first.vote) == (1, 2, True, None)
    recall.sign(swap=rotated, user=voters[0])
    assert RecallSignature.objects.count() == 1
    recall.sign(swap=rotated, user=voters[1])
    recall.sign(swap=rotated, user=voters[2])
    for _ in range(2):
        advance_votes()
    vote = Vote.objects.get()
    assert (vote.state, vote.kind, vote.recalls) == ("open", "recall", rotated)
    assert [(option.code, option.title) for option in vote.candidates.all()] == [
        ("keep", "New-One"),
        ("org/now-one", "Now-One"),
    ]
    assert vote.roll_size == 10


@pytest.mark.django_db(transaction=True)
def test_signatures_at_the_same_moment_make_one_recall(rotated: Swap, voters: list[User]) -> None:
    at_once([lambda who=who: recall.sign(swap=rotated, user=who) for who in voters])
    advance_votes()
    assert Vote.objects.count() == 1


def test_a_recall_can_bring_the_previous_model_back(
    rotated: Swap, voters: list[User], admin: User, over: Any, replica: Replica
) -> None:
    for voter in voters[:2]:
        recall.sign(swap=rotated, user=voter)
    advance_votes()
    vote = Vote.objects.get()
    cast(vote, *((voter, [["org/now-one"]]) for voter in voters))
    over(vote)
    ratify.ratify(vote=vote, actor=admin, start_at=in_days(2), **WORDS)
    assert Swap.objects.get(state="planned").to_model == rotated.from_model


@pytest.mark.parametrize(
    "change",
    [
        {"finished_at": timezone.now() - timedelta(days=14, minutes=1)},
        {"state": SwapState.FAILED},
    ],
)
def test_what_can_not_be_recalled(rotated: Swap, voters: list[User], change: Any) -> None:
    Swap.objects.update(**change)
    assert code(recall.sign, swap=rotated, user=voters[0]) == "no_rotation"
    assert recall.petition(rotated.slot) is None


def test_who_may_sign(rotated: Swap, voters: list[User], admin: User) -> None:
    assert code(recall.sign, swap=rotated, user=person("Otto")) == "not_member"
    recall.sign(swap=rotated, user=voters[0])
    membership.suspend(membership=voters[0].membership, actor=admin, reason="x")
    found = recall.petition(rotated.slot)
    assert found
    assert (found.signed, found.needed) == (0, 2)
    recall.sign(swap=rotated, user=voters[1])
    recall.unsign(swap=rotated, user=voters[1])
    assert recall.petition(rotated.slot, voters[1]).mine is False


# -- A recall that has to wait ------------------------------------------------------------------
@pytest.fixture
def waiting(rotated: Swap, voters: list[User], admin: User) -> Vote:
    """Another round is open, so the recall that a fifth asked for is not open yet."""
    other = with_options(rotated.slot, voters[0], admin)
    rounds.open_vote(vote=other, actor=admin, closes_at=in_days(7))
    for voter in voters[:2]:
        recall.sign(swap=rotated, user=voter)
    advance_votes()
    found = Vote.objects.get(kind="recall")
    assert found.state == "preparing"
    return found


def test_no_admin_changes_what_members_asked_for(
    waiting: Vote, voters: list[User], admin: User
) -> None:
    repo = "acme/gamma-1B"
    extra = proposals.propose(user=voters[0], slot=waiting.slot, repo=repo, reason="x")
    option = waiting.candidates.get(position=1)
    rules = {"quorum_percent": 100, "public_result": True}
    dates = {"opens_at": in_days(5), "closes_at": in_days(9)}
    for act, values in (
        (rounds.set_rules, {"vote": waiting, **rules}),
        (rounds.schedule, {"vote": waiting, **dates}),
        (rounds.cancel, {"vote": waiting}),
        (rounds.open_vote, {"vote": waiting, "closes_at": in_days(2)}),
        (shortlist.accept, {"vote": waiting, "proposal": extra}),
        (shortlist.take_off, {"candidate": option}),
    ):
        assert code(act, actor=admin, **values) == "recall_fixed", act
    waiting.refresh_from_db()
    assert (waiting.state, waiting.quorum_percent, waiting.candidates.count()) == (
        "preparing", 30, 2
    )  # fmt: skip


def test_it_opens_by_itself_for_its_full_length(waiting: Vote, over: Any) -> None:
    over(Vote.objects.get(kind="regular"))
    advance_votes()
    waiting.refresh_from_db()
    assert waiting.state == "open"
    assert waiting.closes_at - waiting.opened_at == pytest.approx(
        rounds.RECALL_LASTS, abs=timedelta(seconds=5)
    )


def test_one_whose_rotation_another_one_has_followed_is_dropped(
    waiting: Vote, over: Any, client: Client, voters: list[User]
) -> None:
    """Between the new model and the previous one is no longer the question."""
    Slot.objects.update(model=model("third-one"))
    over(Vote.objects.get(kind="regular"))
    advance_votes()
    waiting.refresh_from_db()
    assert waiting.state == "cancelled"
    client.force_login(voters[0])
    page = client.get(f"/vote/{waiting.slug}/")
    assert (page.status_code, "This recall is void" in page.content.decode()) == (200, True)


def test_a_fifth_that_comes_of_others_leaving_is_noticed(
    rotated: Swap, voters: list[User], admin: User
) -> None:
    recall.sign(swap=rotated, user=voters[0])
    advance_votes()
    assert not Vote.objects.exists()
    for member in Membership.objects.exclude(user=voters[0])[:5]:
        membership.suspend(membership=member, actor=admin, reason="x")
    advance_votes()
    assert Vote.objects.get().recalls == rotated
