"""A date has one order in each language, on every page of votes and in every mail."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from inference.models import Replica, Swap
from inference.swaps import plan
from members import letters
from members.models import Mail, User, Vote
from members.tasks import advance_votes
from members.voting import ballots, ratify, rounds
from tests.members.voting.conftest import A, guards_off, in_days
from tests.members.voting.pages.conftest import text
from tests.members.voting.pages.test_ratify_pages import WORDS, catalogued

pytestmark = pytest.mark.django_db
UNTIL = datetime(2029, 11, 30, 13, 0, tzinfo=UTC)
LONG = {"en": "30 November 2029, 14:00", "es": "30 de noviembre de 2029 a las 14:00"}
SHORT = {"en": "30 Nov 2029, 14:00", "es": "30/11/2029 14:00"}
OTHER = {
    "en": r"\d/\d{1,2}/\d|\b[A-Z][a-z]+\.? \d{1,2}, \d{4}|[ap]\.m\.|noon|midnight| de 20\d\d",
    "es": r"\b[A-Z][a-z]+\.? \d{1,2}, \d{4}|[ap]\.m\.|\d (?:November|Nov|December|Dec) \d{4}",
}
"""Orders that are another country's, or another language's."""


def read(client: Client, language: str, page: str) -> str:
    return text(client.get(page, headers={"accept-language": language}, follow=True))


@pytest.mark.parametrize("language", ["en", "es"])
def test_pages_and_mails_write_dates_in_one_order(
    vote: Vote, replica: Replica, voters: list[User], admin: User, other_admin: User,
    ana: Client, alma: Client, over: Any, language: str,
) -> None:  # fmt: skip
    User.objects.update(language=language)
    later = vote.closes_at + timedelta(days=1)
    rounds.ask_extension(vote=vote, actor=admin, closes_at=later, reason="x")
    with guards_off():
        Vote.objects.update(opened_at=UNTIL - timedelta(days=7), closes_at=UNTIL)
    vote.refresh_from_db()
    members = ["/", "/vote/", "/vote/2026-Q4/", "/key/"]
    seen = {page: read(ana, language, page) for page in members}
    assert [page for page, said in seen.items() if LONG[language] not in said] == []
    staff = {
        page: read(alma, language, page) for page in ("/staff/votes/", "/staff/votes/2026-Q4/")
    }
    assert SHORT[language] in staff["/staff/votes/"]
    assert LONG[language] in staff["/staff/votes/2026-Q4/"]
    mail = written("vote_opened", language)
    assert LONG[language] in mail
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    ballots.cast(vote=vote, user=voters[1], ranking=[[A]])
    receipt = read(ana, language, "/vote/2026-Q4/receipt/")
    over(vote)
    catalogued()
    ratify.ratify(vote=Vote.objects.get(), actor=admin, start_at=in_days(2), **WORDS)
    Swap.objects.update(start_at=UNTIL)
    plan.approve(swap=Swap.objects.get(), actor=other_admin)
    advance_votes()
    planned = written("vote_planned", language)
    assert LONG[language] in planned
    after = [read(ana, language, page) for page in ("/vote/", "/vote/2026-Q4/result/")]
    assert all(LONG[language] in said for said in after)
    for said in (*seen.values(), *staff.values(), mail, receipt, planned, *after):
        assert re.findall(OTHER[language], said) == []


def written(kind: str, language: str) -> str:
    row = Mail.objects.filter(kind=kind).first()
    row.language = language
    with translation.override(language):
        message = letters.compose(row)
    return f"{message.subject} {message.body}"
