"""Each page of votes in both languages: what every page must hold to."""

from typing import Any

import pytest
from django.test import Client

from members.models import Proposal, User, Vote
from members.voting import ballots, proposals, rounds
from tests.members.voting.conftest import A, in_days
from tests.pages.markup import faults

pytestmark = pytest.mark.django_db
MEMBERS = ("/vote/", "/vote/propose/", "/vote/2026-Q4/", "/vote/2026-Q4/receipt/")
OVER = ("/vote/2026-Q4/result/", "/vote/2026-Q4/check/")


def check(client: Client, path: str) -> None:
    for language in ("es", "en"):
        User.objects.update(language=language)
        page = client.get(path)
        assert page.status_code == 200, path
        assert faults(page, language=language) == [], path


def test_pages_while_a_vote_is_open(
    vote: Vote, voters: list[User], replica: Any, ana: Client, alma: Client, admin: User
) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    row = proposals.propose(user=voters[0], slot=vote.slot, repo="org/more", reason="x")
    for path in (*MEMBERS, f"/vote/proposals/{row.pk}/"):
        check(ana, path)
    rounds.prepare(slot=vote.slot, slug="2027-Q1", actor=admin)
    rounds.ask_extension(vote=vote, actor=admin, closes_at=in_days(9), reason="x")
    pk = Proposal.objects.get(repo="org/more").pk
    for path in ("", "2026-Q4/", "2027-Q1/"):
        check(alma, f"/staff/votes/{path}")
    check(alma, f"/staff/proposals/{pk}/")


def test_pages_after_the_close(
    vote: Vote, voters: list[User], over: Any, ana: Client, alma: Client
) -> None:
    for voter in voters:
        ballots.cast(vote=vote, user=voter, ranking=[[A]])
    over(vote)
    for path in OVER:
        check(ana, path)
    for path in ("", "model/"):
        check(alma, f"/staff/votes/2026-Q4/{path}")
