"""Members read who decided, by name; never by an address."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from inference.models import Replica, Swap
from inference.swaps import plan
from members import letters
from members.models import Mail, User, Vote
from members.tasks import advance_votes
from members.voting import ballots, ratify, rounds
from tests.members.voting.conftest import A, in_days
from tests.members.voting.pages.conftest import text
from tests.members.voting.pages.test_ratify_pages import WORDS, catalogued

pytestmark = pytest.mark.django_db
NAMELESS = ("", "boss@example.org")
"""No name, or an address typed as one."""


@pytest.fixture
def admins(admin: User, other_admin: User) -> list[User]:
    for number, one in enumerate((admin, other_admin)):
        one.name, one.email = NAMELESS[number], f"boss{number}@example.org"
        one.save()
    return [admin, other_admin]


def test_an_extension_says_an_admin_where_there_is_no_name(
    vote: Vote, admins: list[User], ana: Client
) -> None:
    later = vote.closes_at + timedelta(days=1)
    asked = rounds.ask_extension(vote=vote, actor=admins[0], closes_at=later, reason="A storm.")
    rounds.confirm_extension(extension=asked, actor=admins[1])
    said = text(ana.get("/vote/2026-Q4/"))
    assert "Asked by an admin, confirmed by another admin. A storm." in said
    User.objects.filter(pk=admins[1].pk).update(name="Bruno")
    assert "Asked by an admin, confirmed by Bruno." in text(ana.get("/vote/2026-Q4/"))


def test_no_page_or_mail_of_a_round_has_an_address_of_an_admin(
    vote: Vote, admins: list[User], replica: Replica, voters: list[User], ana: Client, over: Any
) -> None:
    """Asked for, extended, closed, ratified and approved by them."""
    pages = ["/", "/vote/", "/vote/propose/", "/vote/2026-Q4/", "/key/", "/status/"]
    pages += [f"/vote/proposals/{one.pk}/" for one in vote.slot.proposals.all()]
    asked = rounds.ask_extension(vote=vote, actor=admins[0], closes_at=in_days(9), reason="x")
    rounds.confirm_extension(extension=asked, actor=admins[1])
    seen = read(ana, pages) + written("vote_opened")
    for voter in voters[:2]:
        ballots.cast(vote=vote, user=voter, ranking=[[A]])
    seen += read(ana, ["/vote/2026-Q4/receipt/"])
    over(vote)
    catalogued()
    planned = ratify.ratify(vote=Vote.objects.get(), actor=admins[0], start_at=in_days(2), **WORDS)
    seen += read(ana, ["/vote/", "/vote/2026-Q4/result/", "/vote/2026-Q4/check/"])
    seen += read(ana, ["/vote/2026-Q4/ballots.json", "/vote/2026-Q4/ballots.csv"])
    plan.approve(swap=planned.swap, actor=admins[1])
    advance_votes()
    seen += read(ana, pages)
    assert Swap.objects.get().approved_by == admins[1]
    seen += written("vote_result") + written("vote_planned")
    assert [page for page in seen if "boss" in page] == []


def written(kind: str) -> list[str]:
    found = [str(letters.compose(row).message()) for row in Mail.objects.filter(kind=kind)]
    assert len(found) == 4
    return found


def read(client: Client, pages: list[str]) -> list[str]:
    answers = [client.get(page, follow=True) for page in pages]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.getvalue().decode() for answer in answers]
