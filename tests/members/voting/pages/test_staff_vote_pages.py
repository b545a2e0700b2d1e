"""The admins' pages of votes: from a proposal to a plan that waits for its second admin."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from members.models import Extension, Mail, Proposal, User, Vote
from members.voting import ballots, rounds
from tests.members.voting.conftest import A, B, deadline_passes
from tests.members.voting.pages.conftest import text

pytestmark = pytest.mark.django_db
PAGE = "/staff/votes/2026-Q4/"


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


def test_a_deadline_that_is_no_single_moment(prepared: Vote, alma: Client) -> None:
    said = "On 28 Mar 2027 the clocks go forward, and there is no 02:30."
    found = alma.post(f"{PAGE}open/", {"closes_at": "2027-03-28T02:30"})
    assert (found.status_code, said in text(found)) == (422, True)


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


# -- Two admins at one round ----------------------------------------------------------------------
def seen(client: Client, path: str = PAGE) -> str:
    found = re.search(r'name="seen" value="([^"]+)"', client.get(path).content.decode())
    assert found
    return unescape(found[1])


@pytest.mark.parametrize(
    ("action", "data"),
    [
        ("rules", {"quorum_percent": "60"}),
        ("schedule", {"opens_at": typed(1), "closes_at": typed(8)}),
        ("open", {"closes_at": typed(7)}),
    ],
)
def test_nothing_is_set_over_what_another_admin_has_just_set(
    prepared: Vote, alma: Client, bruno: Client, action: str, data: dict[str, str]
) -> None:
    opened = seen(alma)
    act(bruno, "rules", quorum_percent="45", public_result="on")
    answer = alma.post(f"{PAGE}{action}/", {**data, "seen": opened})
    assert answer.status_code == 422
    assert "Another admin changed this round after you had opened the page." in text(answer)
    assert all(value in answer.content.decode() for value in data.values())
    prepared.refresh_from_db()
    assert (prepared.quorum_percent, prepared.state, prepared.opens_at) == (45, "preparing", None)
    again = re.search(r'name="seen" value="([^"]+)"', answer.content.decode())
    assert again
    assert alma.post(f"{PAGE}{action}/", {**data, "seen": unescape(again[1])}).status_code == 302


def test_a_second_click_is_no_other_admin(prepared: Vote, alma: Client) -> None:
    opened = seen(alma)
    dates = {"opens_at": typed(1), "closes_at": typed(8), "seen": opened}
    assert [alma.post(f"{PAGE}schedule/", dates).status_code for _ in range(2)] == [302, 302]
    opened = seen(alma)
    rules = {"quorum_percent": "60", "seen": opened}
    assert [alma.post(f"{PAGE}rules/", rules).status_code for _ in range(2)] == [302, 302]


def test_a_round_whose_options_have_changed_is_not_opened_unseen(
    prepared: Vote, alma: Client, bruno: Client
) -> None:
    opened = seen(alma)
    act(bruno, "take-off", candidate=prepared.candidates.get(code=B).pk)
    answer = alma.post(f"{PAGE}open/", {"closes_at": typed(7), "seen": opened})
    assert (answer.status_code, Vote.objects.get().state) == (422, "preparing")
