"""While a vote is open nothing counts, and nothing tells who has voted."""

import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin as django_admin
from django.test import Client
from django.urls import reverse

from members import personal_data
from members.models import Ballot, Mail, PublishedBallot, RollEntry, User, Vote
from members.tasks import advance_votes
from members.voting import ballots, receipts
from tests.members.voting.conftest import A, B, in_days, joined, with_options
from tests.members.voting.test_ballots import ALL
from tests.people import signed_in

pytestmark = pytest.mark.django_db


def test_linked_ballots_and_the_roll_are_in_no_admin() -> None:
    assert not {Ballot, RollEntry, PublishedBallot} & set(django_admin.site._registry)


def pages(admin: User) -> dict[str, str]:
    """Every list and every row of the admin, facets included, as a superuser sees them."""
    client = signed_in(admin)
    found = {}
    for model in django_admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        addresses = [f"{reverse(f'{name}_changelist')}?_facets=True"]
        if model._meta.label in ("members.Vote", "members.Proposal"):
            rows = model._default_manager.all()
            addresses += [reverse(f"{name}_change", args=[row.pk]) for row in rows]
        for address in addresses:
            answer = client.get(address)
            assert answer.status_code == 200, address
            found[address] = without_chance(answer.content.decode())
    return found


def without_chance(html: str) -> str:
    """Tokens, times of sessions, the admin's own log."""
    html = re.sub(r'name="csrfmiddlewaretoken" value="[^"]+"', "", html)
    html = re.sub(r'data-csrf="[^"]+"|nonce="[^"]+"', "", html)
    return re.sub(r"\d\d:\d\d(:\d\d)?", "", html)


def test_v8_no_page_of_the_admin_changes_when_somebody_votes(
    vote: Vote, voters: list[User], admin: User
) -> None:
    pages(admin)  # the first visit makes rows of its own
    before = pages(admin)
    for voter in voters:
        ballots.cast(vote=vote, user=voter, ranking=ALL)
        ballots.mail_receipt(vote=vote, user=voter)
    assert pages(admin) == before


def test_v8_no_metric_changes_when_somebody_votes(vote: Vote, voters: list[User]) -> None:
    from prometheus_client import REGISTRY, generate_latest

    def metrics() -> str:
        text = generate_latest(REGISTRY).decode()
        wanted = ("nan_", "django_", "members_", "vote", "ballot")
        lines = [line for line in text.splitlines() if line.startswith(wanted)]
        return "\n".join(line for line in lines if "_seconds" not in line)  # ages grow anyway

    Mail.objects.update(state=Mail.State.SENT)  # that the vote is open, which may be due just now
    before = metrics()
    for voter in voters:
        ballots.cast(vote=vote, user=voter, ranking=ALL)
        ballots.mail_receipt(vote=vote, user=voter)
    assert metrics() == before


def test_v8_nothing_is_logged_when_somebody_votes(
    vote: Vote, voters: list[User], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    caplog.set_level("DEBUG")
    for voter in voters:
        ballots.cast(vote=vote, user=voter, ranking=ALL)
        ballots.show_receipt(vote=vote, user=voter)
    assert caplog.records == []


def test_what_the_beat_logs_and_writes_has_no_count(
    vote: Vote, voters: list[User], over: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for voter in voters:
        ballots.cast(vote=vote, user=voter, ranking=ALL)
    caplog.clear()
    advance_votes()
    over(vote)
    said: list[Any] = [record.msg for record in caplog.records]
    assert [set(line) - {"level", "logger", "timestamp"} for line in said] == [{"vote", "event"}]


def test_her_own_export_has_her_ballot_until_the_close(
    vote: Vote, voters: list[User], over: Any
) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=[[B]])
    mine, other = (personal_data.export(user=user) for user in voters[:2])
    assert mine["ballots"] == [{"vote__slug": "2026-Q4", "ranking": [[B]]}]
    assert other["ballots"] == []
    over(vote)
    mine = personal_data.export(user=voters[0])
    assert mine["ballots"] == []
    assert mine["on_the_roll_of"] == [{"vote__slug": "2026-Q4"}]


def test_receipts_do_not_tell_the_language_of_the_voter(vote: Vote, over: Any) -> None:
    """Both spellings of a number stand in the files, whatever she reads."""
    assert receipts.words(12345, "es") != receipts.words(12345, "en")
    assert [field.name for field in PublishedBallot._meta.fields] == [
        "id", "vote", "receipt", "ranking"
    ]  # fmt: skip


def test_no_other_model_refers_to_ballots() -> None:
    """Nor could it: no relation of any model points to them."""
    for model in apps.get_models():
        targets = {field.related_model for field in model._meta.get_fields() if field.is_relation}
        assert not targets & {Ballot, PublishedBallot} or model is Vote


def test_a_mail_that_was_asked_for_is_not_shown_to_admins(
    vote: Vote, voters: list[User], admin: User
) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    ballots.mail_receipt(vote=vote, user=voters[0])
    row = Mail.objects.get(kind="vote_receipt")
    client: Client = signed_in(admin)
    assert client.get(reverse("admin:members_mail_change", args=[row.pk])).status_code == 302


def test_forty_voters_without_a_trace_of_order(slot: Any, admin: User, over: Any) -> None:
    """The published file is sorted by receipts, which are random."""
    voters = [joined(f"V{number}") for number in range(40)]
    found = with_options(slot, voters[0], admin)
    from members.voting import results, rounds

    found = rounds.open_vote(vote=found, actor=admin, closes_at=in_days(1))
    cast = []
    for number, voter in enumerate(voters):
        ballots.cast(vote=found, user=voter, ranking=[[A]] if number < 20 else [[B]])
        cast.append(Ballot.objects.get(voter__user=voter).receipt)
    lines = list(results.as_csv(over(found)))[1:]
    words = [line.split(",")[1] for line in lines]
    assert words == [receipts.words(n, "en").replace(" ", "-") for n in sorted(cast)]
