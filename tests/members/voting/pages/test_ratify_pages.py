"""From a result to a plan: the entry of the catalogue, the date, and who approves it."""

from typing import Any

import pytest
from django.test import Client

from inference.models import CatalogModel, Replica, Swap
from inference.swaps import plan
from members.models import Mail, Proposal, User, Vote
from members.tasks import advance_votes
from members.voting import ballots, rounds
from tests.members.voting.conftest import A, B
from tests.members.voting.pages.conftest import text
from tests.members.voting.pages.test_staff_vote_pages import PAGE, typed

pytestmark = pytest.mark.django_db
RESULT = "/vote/2026-Q4/result/"
WORDS = {"announcement_es": "Cambiamos el domingo.", "announcement_en": "We change on Sunday."}


@pytest.fixture
def won(vote: Vote, replica: Replica, voters: list[User], over: Any) -> Vote:
    """Alpha, with a quorum."""
    for voter in voters[:3]:
        ballots.cast(vote=vote, user=voter, ranking=[[A], ["keep"]])
    return over(vote)


def catalogued(**fields: Any) -> CatalogModel:
    from tests.inference.names.conftest import model

    found = model("alpha", **fields)
    CatalogModel.objects.filter(pk=found.pk).update(repo=A)
    return CatalogModel.objects.get(pk=found.pk)


def test_the_catalogues_form_comes_filled_in(won: Vote, alma: Client) -> None:
    assert "Add it with its engine flags." in text(alma.get(PAGE))
    assert alma.get(f"{PAGE}ratify/").url == f"{PAGE}model/"
    form = alma.get(f"{PAGE}model/").context["form"]
    assert form["repo"].value() == A
    assert form["name"].value() == "alpha-7b"
    assert [form[name].value() for name in ("flags", "environment")] == ["{}", "{}"]
    data = {
        "name": "alpha-7b", "title": "Alpha 7B", "kind": "chat", "repo": A, "revision": "b" * 40,
        "licence": "apache-2.0", "weights_mib": "8000", "context_length": "32768",
        "max_output": "8192", "gpus_needed": "1", "memory_mib": "24000", "load_seconds": "600",
        "flags": "{}", "environment": "{}", "config": "{}", "offered": "on",
    }  # fmt: skip
    assert alma.post(f"{PAGE}model/", {**data, "revision": "main"}).status_code == 422
    assert alma.post(f"{PAGE}model/", data).url == f"{PAGE}ratify/"
    assert alma.get(f"{PAGE}model/").url == f"{PAGE}ratify/"


def test_a_plan_waits_for_its_second_admin(
    won: Vote, alma: Client, bea: Client, settings: Any
) -> None:
    settings.SWAP_SECOND_ADMIN = True
    alpha = catalogued()
    data = {"model": alpha.pk, "start_at": typed(3), **WORDS}
    assert "moves from Now-One to alpha-7B" in text(alma.get(f"{PAGE}ratify/"))
    assert alma.post(f"{PAGE}ratify/", {**data, "announcement_es": ""}).status_code == 422
    assert not Swap.objects.exists()
    for _ in range(2):
        assert alma.post(f"{PAGE}ratify/", data).url == PAGE
    swap = Swap.objects.get()
    assert (swap.state, swap.to_model, swap.proposed_by.name) == ("planned", alpha, "Alma")
    assert f'href="/staff/swaps/{swap.pk}/"' in alma.get(PAGE).content.decode()
    said = text(bea.get("/vote/"))
    assert "Now-One → Alpha waits for a second admin" in said
    assert "We change on Sunday." in said
    assert not Mail.objects.filter(kind="vote_planned").exists()


@pytest.mark.parametrize(
    ("two", "form", "done", "page"),
    [
        (True, "before another admin has approved", "Another admin must approve", "Another admin"),
        (False, "which may be you", "An admin, also you, must approve", "An admin approves it"),
    ],
)
def test_who_may_approve_is_said_as_it_is_set(
    won: Vote, alma: Client, settings: Any, two: bool, form: str, done: str, page: str
) -> None:
    settings.SWAP_SECOND_ADMIN = two
    data = {"model": catalogued().pk, "start_at": typed(3), **WORDS}
    assert form in text(alma.get(f"{PAGE}ratify/"))
    said = text(alma.post(f"{PAGE}ratify/", data, follow=True))
    assert done in said
    assert page in said


def test_what_has_been_replaced_does_not_run_now(won: Vote, alma: Client, bea: Client) -> None:
    """Neither on the staff's page nor where its proposal stands beside it."""
    alpha = catalogued()
    won.slot.model = alpha
    won.slot.save()
    said = text(alma.get(PAGE))
    assert "runs now: keep it" not in said
    assert "A. Now-One org/now-one ran then: keep it" in said
    row = Proposal.objects.get(repo=A)
    for page in (f"/staff/proposals/{row.pk}/", f"/vote/proposals/{row.pk}/"):
        said = text((alma if "staff" in page else bea).get(page))
        assert "Beside what ran when the vote opened" in said
        assert "Runs now" not in said


def test_a_rotation_or_an_opening_in_another_year_is_refused_beside_its_date(
    won: Vote, slot: Any, alma: Client
) -> None:
    data = {"model": catalogued().pk, "start_at": "9998-01-01T06:00", **WORDS}
    refused = alma.post(f"{PAGE}ratify/", data)
    assert refused.status_code == 422
    assert refused.context["form"]["start_at"].errors == [
        "A rotation starts within a year from now. Choose an earlier day."
    ]
    rounds.prepare(slot=slot, slug="later", actor=None)
    dates = {"opens_at": "9998-01-01T06:00", "closes_at": "9998-01-09T06:00"}
    refused = alma.post("/staff/votes/later/schedule/", dates)
    assert refused.status_code == 422
    assert refused.context["schedule_form"]["opens_at"].errors == [
        "A vote opens within a year from now. Choose an earlier day."
    ]
    assert not Swap.objects.exists()
    assert Vote.objects.get(slug="later").opens_at is None


def test_a_date_in_the_past_plans_nothing(won: Vote, alma: Client) -> None:
    data = {"model": catalogued().pk, "start_at": typed(-1), **WORDS}
    refused = alma.post(f"{PAGE}ratify/", data)
    assert refused.status_code == 422
    assert "This time is in the past." in text(refused)  # no more: without one it can't be planned
    assert Vote.objects.get().state == "closed"


def test_a_plan_that_was_cancelled_is_made_again_with_another_date(
    won: Vote, alma: Client, bruno: Client, bea: Client
) -> None:
    data = {"model": catalogued().pk, "start_at": typed(3), **WORDS}
    alma.post(f"{PAGE}ratify/", data)
    first = Swap.objects.get()
    plan.approve(swap=first, actor=User.objects.get(name="Bruno"))
    advance_votes()
    assert alma.get(f"{PAGE}ratify/").url == PAGE
    plan.cancel(swap=first, actor=None)
    assert "The rotation that was planned has not taken place" in text(bea.get(RESULT))
    assert "You can make it again" in text(bruno.get(PAGE))
    assert bruno.post(f"{PAGE}ratify/", {**data, "start_at": typed(9)}).url == PAGE
    second = Vote.objects.get().swap
    assert (Swap.objects.count(), second.state, second.proposed_by.name) == (2, "planned", "Bruno")
    assert "A rotation is planned:" in text(bea.get(RESULT))
    plan.approve(swap=second, actor=User.objects.get(name="Alma"))
    for _ in range(2):
        advance_votes()
    assert Mail.objects.filter(kind="vote_planned").count() == 2 * 4


def test_another_entry_than_the_one_chosen_is_refused(won: Vote, alma: Client) -> None:
    catalogued()
    other = CatalogModel.objects.get(name="now-one")
    data = {"model": other.pk, "start_at": typed(3), **WORDS}
    assert alma.post(f"{PAGE}ratify/", data).status_code == 422


def test_quorum_missed_or_kept_has_nothing_to_ratify(
    vote: Vote, voters: list[User], over: Any, alma: Client
) -> None:
    assert "This vote is not over yet." in text(alma.get(f"{PAGE}ratify/", follow=True))
    over(vote)
    assert "The quorum was missed: the current model stays." in text(alma.get(PAGE))
    assert alma.post(f"{PAGE}ratify/").url == PAGE
    assert alma.get(f"{PAGE}model/", follow=True).request["PATH_INFO"] == PAGE


def test_a_tie_asks_whether_it_is_meant(
    vote: Vote, replica: Replica, voters: list[User], over: Any, alma: Client
) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=[[A], [B]])
    ballots.cast(vote=vote, user=voters[1], ranking=[[B], [A]])
    over(vote)
    winner = Vote.objects.get().result["winner"]
    entry = catalogued()
    CatalogModel.objects.filter(pk=entry.pk).update(repo=winner)
    data = {"model": entry.pk, "start_at": typed(3), **WORDS}
    refused = alma.post(f"{PAGE}ratify/", data)
    assert "confirm that you want this plan" in text(refused)
    assert not Swap.objects.exists()
    alma.post(f"{PAGE}ratify/", {**data, "despite_tie": "on"})
    assert Swap.objects.get().to_model == entry
