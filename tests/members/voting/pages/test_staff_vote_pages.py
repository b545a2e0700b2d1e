"""The admins' pages of votes: from a proposal to a plan that waits for its second admin."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from inference.models import CatalogModel, Replica, Swap
from inference.swaps import plan
from members.models import Extension, Mail, Proposal, User, Vote
from members.tasks import advance_votes
from members.voting import ballots, proposals, rounds
from tests.members.voting.conftest import A, B, deadline_passes
from tests.members.voting.pages.conftest import text

pytestmark = pytest.mark.django_db
PAGE = "/staff/votes/2026-Q4/"
RESULT = "/vote/2026-Q4/result/"
WORDS = {"announcement_es": "Cambiamos el domingo.", "announcement_en": "We change on Sunday."}


def typed(days: float) -> str:
    """As a browser sends what is typed into a field for date and time."""
    return f"{timezone.localtime() + timedelta(days=days):%Y-%m-%dT%H:%M}"


def act(client: Client, action: str, **data: Any) -> str:
    return text(client.post(f"{PAGE}{action}/", data, follow=True))


# -- Who ----------------------------------------------------------------------------------------
POSTS = [
    f"{PAGE}{action}/"
    for action in ("rules", "schedule", "open", "cancel", "take-off", "add", "extend", "confirm")
]


def test_only_staff_with_a_second_factor(prepared: Vote, alma: Client, ana: Client) -> None:
    pk = Proposal.objects.first().pk
    pages = ["/staff/votes/", PAGE, f"/staff/proposals/{pk}/"]
    for page in pages:
        assert alma.get(page).status_code == 200
    acts = [f"/staff/proposals/{pk}/{name}/" for name in ("facts", "again", "accept", "decline")]
    for page in [*pages, f"{PAGE}ratify/", f"{PAGE}model/"]:
        assert ana.get(page).status_code == 403
        assert Client().get(page).status_code == 302
    for page in [*POSTS, *acts, "/staff/votes/", f"{PAGE}ratify/", f"{PAGE}model/"]:
        assert ana.post(page).status_code == 403
        assert Client().post(page).status_code == 302
    for page in [*POSTS, *acts]:
        assert alma.get(page).status_code == 405
    assert alma.post(f"{PAGE}explode/").status_code == 404
    assert alma.post("/staff/votes/2031-Q1/open/").status_code == 404


# -- Preparing ----------------------------------------------------------------------------------
def test_prepare_a_round(slot: Any, alma: Client) -> None:
    data = {"slot": "nan", "slug": "2026-Q4", "quorum_percent": "30"}
    for _ in range(2):  # a second click
        assert alma.post("/staff/votes/", data).url == PAGE
    assert [option.code for option in Vote.objects.get().candidates.all()] == ["keep"]
    assert "Besides the current model at least one more must be on the ballot." in text(
        alma.get(PAGE)
    )


@pytest.mark.parametrize("slug", ["propose", "Recall", "recall-7", "2026 Q4", "", "x" * 41, "../x"])
def test_names_that_are_no_addresses_are_refused(slot: Any, alma: Client, slug: str) -> None:
    data = {"slot": "nan", "slug": slug, "quorum_percent": "30"}
    assert alma.post("/staff/votes/", data).status_code == 422
    assert not Vote.objects.exists()


def test_a_name_that_another_admin_has_taken(prepared: Vote, bruno: Client) -> None:
    data = {"slot": "nan", "slug": "2026-q4", "quorum_percent": "30"}
    answer = bruno.post("/staff/votes/", data)
    assert "There is a vote of this name." in text(answer)
    assert answer.status_code == 422


def test_put_on_take_off_and_rules(prepared: Vote, alma: Client) -> None:
    option = prepared.candidates.get(code=B)
    for _ in range(2):
        act(alma, "take-off", candidate=option.pk)
    assert prepared.candidates.count() == 2
    for _ in range(2):
        act(alma, "add", proposal=option.proposal_id)
    assert prepared.candidates.count() == 3
    act(alma, "rules", quorum_percent="45", public_result="on")
    prepared.refresh_from_db()
    assert (prepared.quorum_percent, prepared.public_result) == (45, True)
    assert alma.post(f"{PAGE}rules/", {"quorum_percent": "0"}).status_code == 422


def test_of_another_round_nothing_is_taken_off(prepared: Vote, alma: Client, slot: Any) -> None:
    rounds.prepare(slot=slot, slug="other", actor=None)
    option = prepared.candidates.get(code=B)
    alma.post("/staff/votes/other/take-off/", {"candidate": option.pk})
    assert prepared.candidates.count() == 3
    assert alma.post(f"{PAGE}add/", {"proposal": "999999"}).status_code == 404
    assert alma.post(f"{PAGE}confirm/", {"extension": "999999"}).status_code == 404


def test_cancel(prepared: Vote, alma: Client) -> None:
    assert "Its proposals are open again." in act(alma, "cancel")
    act(alma, "cancel")
    assert set(Proposal.objects.values_list("state", flat=True)) == {"open"}


# -- Opening ------------------------------------------------------------------------------------
def test_open_twice_is_open_once(prepared: Vote, alma: Client, bruno: Client) -> None:
    assert "Nothing stands in the way" not in text(alma.get(PAGE))  # no deadline yet
    until = typed(7)
    assert "Open. The roll and the options are fixed" in act(alma, "open", closes_at=until)
    act(alma, "open", closes_at=until)
    assert "options, rules and dates can't change any more" in act(bruno, "open", closes_at=until)
    assert Mail.objects.filter(kind="vote_opened").count() == 4
    vote = Vote.objects.get()
    assert f"{timezone.localtime(vote.closes_at):%Y-%m-%dT%H:%M}" == until


def test_a_deadline_in_another_century_is_refused_beside_it(prepared: Vote, alma: Client) -> None:
    said = "closes at most 60 days after it opens"
    typed = {"opens_at": "9999-01-01T00:00", "closes_at": "9999-12-31T22:59"}
    for action in ("open", "schedule"):
        found = alma.post(f"{PAGE}{action}/", typed)
        assert found.status_code == 422
        assert said in str(found.context[f"{action}_form"]["closes_at"].errors)


def test_schedule(prepared: Vote, alma: Client) -> None:
    opens, closes = typed(1), typed(8)
    assert "It opens by itself" in act(alma, "schedule", opens_at=opens, closes_at=closes)
    assert "Nothing stands in the way of opening." in text(alma.get(PAGE))
    said = act(alma, "schedule", opens_at=closes, closes_at=opens)
    assert "It must open before it closes." in said
    prepared.refresh_from_db()
    assert f"{timezone.localtime(prepared.opens_at):%Y-%m-%dT%H:%M}" == opens


@pytest.mark.parametrize("when", ["", "soon", "2026-10-25T02:30", "2027-03-28T02:30"])
def test_a_time_that_is_no_single_moment_is_refused(
    prepared: Vote, alma: Client, when: str
) -> None:
    """On Sundays when clocks change some times are there twice, and some never."""
    assert alma.post(f"{PAGE}open/", {"closes_at": when}).status_code == 422
    assert Vote.objects.get().state == "preparing"


def test_v5_nothing_changes_while_it_is_open(vote: Vote, alma: Client) -> None:
    option = vote.candidates.get(code=B)
    fixed = "options, rules and dates can't change any more"
    assert fixed in act(alma, "take-off", candidate=option.pk)
    assert fixed in act(alma, "rules", quorum_percent="1")
    assert fixed in act(alma, "cancel")
    assert fixed in act(alma, "schedule", opens_at=typed(1), closes_at=typed(2))
    page = alma.get(PAGE).content.decode()
    for action in ("rules", "schedule", "open", "cancel", "take-off", "add", "ratify"):
        assert f"{PAGE}{action}/" not in page


# -- Extending ----------------------------------------------------------------------------------
def test_two_admins_extend(vote: Vote, alma: Client, bruno: Client) -> None:
    for _ in range(2):
        act(alma, "extend", closes_at=typed(9)[:-2] + "00", reason="A holiday.")
    extension = Extension.objects.get()
    assert "Another admin must confirm it." in act(alma, "confirm", extension=extension.pk)
    assert Vote.objects.get().closes_at == vote.closes_at
    for _ in range(2):
        said = act(bruno, "confirm", extension=extension.pk)
        assert "must be later" not in said
    assert Vote.objects.get().closes_at == extension.closes_at
    assert "confirmed by Bruno" in said


def test_no_extension_after_the_deadline(vote: Vote, alma: Client) -> None:
    deadline_passes(vote)
    said = act(alma, "extend", closes_at=typed(9), reason="x")
    assert "The deadline is over, so it can't be moved any more." in said


# -- Vetting ------------------------------------------------------------------------------------
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
    said = text(alma.post(f"{path}facts/", {**FACTS, "revision": "main"}, follow=True))
    assert "This value is not possible." in said


def test_the_hub_is_asked_again(proposal: Proposal, alma: Client) -> None:
    Proposal.objects.update(facts_state="failed", facts_due_at=None, facts_error="hub_odd")
    path = f"/staff/proposals/{proposal.pk}/"
    assert "The hub's answer is not what we expect." in text(alma.get(path))
    alma.post(f"{path}again/")
    proposal.refresh_from_db()
    assert proposal.facts_state == "due"


# -- Ratifying ----------------------------------------------------------------------------------
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


def test_a_plan_waits_for_its_second_admin(won: Vote, alma: Client, bea: Client) -> None:
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


# -- No counts ----------------------------------------------------------------------------------
def test_the_admin_shows_no_voter_and_no_ballot(
    vote: Vote, voters: list[User], alma: Client
) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    ballots.mail_receipt(vote=vote, user=voters[0])
    pages = [f"/admin/members/{name}/" for name in ("vote", "proposal", "user")]
    pages += ["/admin/", f"/admin/members/vote/{vote.pk}/change/", "/staff/"]
    for page in pages:
        said = alma.get(page)
        assert said.status_code == 200
        assert "receipt" not in said.content.decode().lower(), page
    mails = alma.get("/admin/members/mail/").context["cl"].result_list
    assert {mail.kind for mail in mails} == {"vote_opened"}
    for hidden in ("ballot", "rollentry", "publishedballot"):
        assert alma.get(f"/admin/members/{hidden}/").status_code == 404
    assert alma.post(f"/admin/members/vote/{vote.pk}/delete/").status_code == 403
