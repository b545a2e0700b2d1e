"""Proposing, seconding, the calendar, history and recall."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.formats import date_format

from inference.models import CatalogModel, Slot, Swap
from members import letters
from members.models import Mail, Proposal, RecallSignature, Second, User, Vote
from members.tasks import advance_votes
from members.voting import proposals, rounds, shortlist
from tests.inference.names.conftest import model
from tests.members.voting.conftest import A, in_days
from tests.members.voting.pages.conftest import text
from tests.people import signed_in

pytestmark = pytest.mark.django_db
HERS = {"repo": f"https://huggingface.co/{A}/tree/main", "reason": "It is good at Catalan."}


def propose(client: Client, **more: str) -> Any:
    return client.post("/vote/propose/", {**HERS, **more})


# -- Proposing ----------------------------------------------------------------------------------
def test_propose_by_pasting_an_address(slot: Slot, ana: Client, bea: Client) -> None:
    answer = propose(ana)
    row = Proposal.objects.get()
    assert (row.repo, answer.url) == (A, f"/vote/proposals/{row.pk}/")
    said = text(bea.get(answer.url))
    assert "It is good at Catalan." in said
    assert "Its facts are being looked up" in said
    assert A in text(bea.get("/vote/"))


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({}, "Its facts are being looked up; load the page again in a minute."),
        ({"typed": {"licence": "mit"}}, "An admin has typed facts."),
        ({"facts_attempts": 2, "facts_error": "hub_unreachable"}, "could not be looked up yet."),
        ({"facts_state": "failed", "facts_error": "repo_missing"}, "could not be looked up. An"),
        ({"state": "voted"}, ""),
    ],
)
def test_what_is_said_of_the_look_up_is_true(
    slot: Slot, ana: Client, state: dict[str, Any], says: str
) -> None:
    path = propose(ana).url
    ana.get(path)  # takes the message away that the proposal itself leaves
    Proposal.objects.update(**{"facts_due_at": None, **state})
    said = text(ana.get(path))
    assert says in said
    assert ("being looked up" in said) == (not state)
    if state.get("facts_attempts"):
        assert "could not be looked up yet." in text(ana.get("/vote/"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"repo": "not a repository"}, "This is not a Hugging Face repository."),
        ({"repo": "org/now-one"}, "This model runs now; keeping it is on every ballot."),
        ({"reason": "  "}, "This field is required."),
    ],
)
def test_what_is_no_proposal_is_said(
    slot: Slot, ana: Client, more: dict[str, str], words: str
) -> None:
    answer = propose(ana, **more)
    assert answer.status_code == 422
    assert words in text(answer)
    assert not Proposal.objects.exists()


def test_a_duplicate_is_found_and_can_be_seconded(slot: Slot, ana: Client, bea: Client) -> None:
    propose(ana)
    again = propose(bea, repo=A.upper())
    assert again.status_code == 409
    assert "You can second that proposal." in text(again)
    assert f'action="/vote/proposals/{Proposal.objects.get().pk}/second/"' in again.content.decode()


def test_her_own_second_click_finds_what_the_first_has_made(slot: Slot, ana: Client) -> None:
    assert propose(ana).url == propose(ana).url
    assert Proposal.objects.count() == 1


def test_nearly_the_same_is_asked_about_once(slot: Slot, ana: Client, bea: Client) -> None:
    propose(ana)
    asked = propose(bea, repo="other/Alpha-7B-AWQ")
    assert "Nearly the same is proposed already." in text(asked)
    assert Proposal.objects.count() == 1
    propose(bea, repo="other/Alpha-7B-AWQ", anyway="yes")
    assert Proposal.objects.count() == 2


def test_what_runs_now_is_said_to_run_whatever_else_is_proposed(
    slot: Slot, ana: Client, bea: Client
) -> None:
    """Also where something nearly the same is proposed, or it was itself before it ran."""

    def asked() -> str:
        return text(propose(bea, repo="org/now-one"))

    runs = "This model runs now; keeping it is on every ballot."
    propose(ana, repo="other/now-one-AWQ", anyway="yes")
    assert runs in asked()
    old = Proposal.objects.create(slot=slot, repo="ORG/now-one", reason="x")
    assert runs in asked()
    assert "You can second that proposal." not in asked()
    said = text(bea.post(f"/vote/proposals/{old.pk}/second/", {"want": "yes"}, follow=True))
    assert runs in said
    assert not Second.objects.exists()


def test_nearly_the_same_as_what_runs_is_asked_about_once(slot: Slot, ana: Client) -> None:
    asked = propose(ana, repo="other/Now-One-FP8")
    assert "Nearly the same runs now: Now-One (org/now-one)." in text(asked)
    assert not Proposal.objects.exists()
    assert propose(ana, repo="other/Now-One-FP8", anyway="yes").status_code == 302


def test_three_at_most(slot: Slot, ana: Client) -> None:
    for name in ("a", "b", "c"):
        propose(ana, repo=f"org/{name}")
    assert "You have three open proposals." in text(propose(ana, repo="org/d"))
    ana.post(f"/vote/proposals/{Proposal.objects.get(repo='org/a').pk}/withdraw/")
    assert propose(ana, repo="org/d").status_code == 302


def test_second_and_take_it_back_as_often_as_she_clicks(
    slot: Slot, ana: Client, bea: Client
) -> None:
    propose(ana)
    path = f"/vote/proposals/{Proposal.objects.get().pk}/second/"
    for _ in range(2):
        bea.post(path, {"want": "yes"})
        assert Second.objects.count() == 1
    for _ in range(2):
        bea.post(path, {"want": "no"})
        assert Second.objects.count() == 0
    assert "You proposed it yourself" in text(ana.post(path, {"want": "yes"}, follow=True))


def test_on_a_ballot_it_is_seconded_no_more(
    slot: Slot, ana: Client, bea: Client, admin: User
) -> None:
    """Neither is a second taken back: they stand as they brought it there."""
    propose(ana)
    row = Proposal.objects.get()
    path = f"/vote/proposals/{row.pk}/second/"
    bea.post(path, {"want": "yes"})
    shortlist.accept(
        proposal=row, vote=rounds.prepare(slot=slot, slug="2026-Q4", actor=admin), actor=admin
    )
    for page in ("/vote/", f"/vote/proposals/{row.pk}/"):
        answer = bea.get(page)
        assert path not in answer.content.decode()
        assert "It is on the ballot: no more seconds are needed." in text(answer)
    for want in ("yes", "no"):
        said = text(bea.post(path, {"want": want}, follow=True))
        assert "This model is on a ballot already: it needs no more seconds." in said
    assert Second.objects.count() == 1
    again = propose(bea)
    assert again.status_code == 409
    assert "This model is on a ballot already" in text(again)
    assert path not in again.content.decode()


def test_only_who_proposed_it_withdraws_it(slot: Slot, ana: Client, bea: Client) -> None:
    propose(ana)
    path = f"/vote/proposals/{Proposal.objects.get().pk}/withdraw/"
    assert bea.post(path).status_code == 404
    assert ana.get(path).status_code == 405
    ana.post(path)
    ana.post(path)
    assert Proposal.objects.get().state == "withdrawn"


def test_a_declined_one_is_between_her_and_the_admins(
    slot: Slot, ana: Client, bea: Client, admin: User
) -> None:
    propose(ana)
    row = Proposal.objects.get()
    shortlist.decline(proposal=row, actor=admin, reason="Too big for our servers.")
    assert "Too big for our servers." in text(ana.get("/vote/"))
    assert "Too big for our servers." in text(ana.get(f"/vote/proposals/{row.pk}/"))
    assert bea.get(f"/vote/proposals/{row.pk}/").status_code == 404
    assert bea.get("/vote/proposals/999999/").status_code == 404


def test_nobody_else_gets_here(slot: Slot, ana: Client, outsider: User) -> None:
    propose(ana)
    pk = Proposal.objects.get().pk
    client = signed_in(outsider)
    for path in ("/vote/", "/vote/propose/", f"/vote/proposals/{pk}/"):
        assert client.get(path).status_code == 403
        assert Client().get(path).status_code == 302
    for path in (f"proposals/{pk}/second/", f"proposals/{pk}/withdraw/", "recall/1/"):
        assert client.post(f"/vote/{path}").status_code == 403
    assert not Second.objects.exists()


def test_without_a_model_there_is_nothing_to_propose(voters: list[User]) -> None:
    client = signed_in(voters[0])
    assert "No model runs yet" in text(client.get("/vote/"))
    assert client.post("/vote/propose/", HERS).status_code == 422


def test_a_slot_that_serves_nothing_any_more(slot: Slot, ana: Client) -> None:
    propose(ana)
    Slot.objects.update(model=None)
    assert ana.get("/vote/").status_code == 200
    page = ana.get(f"/vote/proposals/{Proposal.objects.get().pk}/")
    assert page.status_code == 200
    assert "Beside what runs now" not in text(page)


# -- The calendar, history and recall -----------------------------------------------------------
def planned(slot: Slot, **fields: Any) -> Swap:
    new = model("next-one", capabilities=["tools", "reasoning"], context_length=50_000)
    return Swap.objects.create(slot=slot, from_model=slot.model, to_model=new, **fields)


def test_the_calendar_says_what_changes_when_and_what_to_do(slot: Slot, ana: Client) -> None:
    planned(slot, state="approved", start_at=timezone.now() + timedelta(days=3))
    said = text(ana.get("/vote/"))
    for words in (
        "Now-One → Next-One",
        "Gained: reasoning before it answers",
        "Lost: understanding images",
        "The context goes from 100,000 to 50,000 tokens.",
        "What you must do: nothing, if your tools call “nan”.",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("state", "two", "said"),
    [
        ("planned", True, "waits for a second admin"),
        ("planned", False, "waits for an admin"),
        ("approved", True, "confirmed"),
        ("running", True, "under way"),
    ],
)
def test_the_calendar_says_how_far_a_rotation_is(
    slot: Slot, ana: Client, settings: Any, state: str, two: bool, said: str
) -> None:
    settings.SWAP_SECOND_ADMIN = two
    planned(slot, state=state, start_at=timezone.now(), started_at=timezone.now())
    assert f"Now-One → Next-One {said}" in text(ana.get("/vote/"))


def test_history_tells_each_round_in_a_line(vote: Vote, over: Any, ana: Client) -> None:
    over(vote)
    assert "0 voted and 2 were needed: the current model stays. 0 / 4" in text(ana.get("/vote/"))


def rotated(slot: Slot) -> Swap:
    """An hour ago; the slot serves the new one."""
    swap = planned(slot, state="done", finished_at=timezone.now() - timedelta(hours=1))
    Slot.objects.filter(pk=slot.pk).update(model=swap.to_model)
    return swap


def test_a_fifth_of_the_members_call_for_another_vote(
    slot: Slot, voters: list[User], ana: Client
) -> None:
    swap = rotated(slot)
    assert "0 of 1 signatures." in text(ana.get("/vote/"))
    path = f"/vote/recall/{swap.pk}/"
    assert ana.get(path).status_code == 405
    for _ in range(2):
        ana.post(path, {"want": "yes"})
    assert RecallSignature.objects.count() == 1
    assert Vote.objects.get().slug == f"recall-{swap.pk}"
    said = text(ana.get("/vote/"))
    assert "There are enough: the vote" in said
    assert "Signatures: 1; a fifth of the members is 1." in said


def test_a_recall_says_on_its_ballot_and_in_its_mail_what_it_is_about(
    slot: Slot, voters: list[User], ana: Client
) -> None:
    swap = rotated(slot)
    ana.post(f"/vote/recall/{swap.pk}/", {"want": "yes"})
    advance_votes()
    day = date_format(timezone.localtime(swap.finished_at), "DATE_FORMAT")
    about = (
        f"This is a recall: members asked to vote again about the rotation of {day},"
        f" in which {swap.to_model} took the place of {swap.from_model}."
    )
    assert about in text(ana.get(f"/vote/recall-{swap.pk}/"))
    Mail.objects.update(language="en")
    mail = letters.compose(Mail.objects.filter(kind="vote_opened")[0])
    assert about in " ".join(mail.body.split())
    assert about in " ".join(str(mail.alternatives[0][0]).split())
    assert f"keep {swap.to_model}, or back to {swap.from_model}?" in mail.subject


def test_a_rotation_of_long_ago_is_not_recalled(slot: Slot, ana: Client) -> None:
    swap = rotated(slot)
    Swap.objects.update(finished_at=timezone.now() - timedelta(days=15))
    said = text(ana.post(f"/vote/recall/{swap.pk}/", {"want": "yes"}, follow=True))
    assert "There is no rotation that can be recalled now." in said
    assert ana.post("/vote/recall/999999/").status_code == 404


# -- Cost ---------------------------------------------------------------------------------------
def queries(client: Client, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as found:
        assert client.get(path).status_code == 200
    return len(found)


def test_as_many_queries_for_three_proposals_and_rounds_as_for_one(
    vote: Vote, replica: Any, voters: list[User], bea: Client, over: Any, admin: User
) -> None:
    slot = Slot.objects.get()
    CatalogModel.objects.update(config={"hidden_size": 8})
    proposals.propose(user=voters[2], slot=slot, repo="org/a", reason="x")
    over(vote)
    one = queries(bea, "/vote/")
    for name in ("b", "c"):
        proposals.propose(user=voters[2], slot=slot, repo=f"org/{name}", reason="x")
    for slug in ("2027-Q1", "2027-Q2"):
        new = rounds.prepare(slot=slot, slug=slug, actor=admin)
        extra = proposals.propose(user=voters[3], slot=slot, repo=f"org/{slug}", reason="x")
        shortlist.accept(proposal=extra, vote=new, actor=admin)
        over(rounds.open_vote(vote=new, actor=admin, closes_at=in_days(1)))
    assert queries(bea, "/vote/") == one


def test_the_ballot_costs_as_much_for_three_options_as_for_two(
    prepared: Vote, replica: Any, ana: Client, admin: User
) -> None:
    """Also before it opens, when what is said of each is still computed."""
    rounds.schedule(vote=prepared, actor=admin, opens_at=in_days(1), closes_at=in_days(2))
    three = queries(ana, "/vote/2026-Q4/")
    shortlist.take_off(candidate=prepared.candidates.get(code=A), actor=admin)
    assert queries(ana, "/vote/2026-Q4/") == three
