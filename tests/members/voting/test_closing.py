"""The close: one effect, however often and from wherever; nothing joins a voter to a ballot."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.serializers import serialize
from django.db import connection
from django.utils import timezone

from inference.models import Slot
from members.models import Ballot, Mail, PublishedBallot, User, Vote
from members.tasks import advance_votes
from members.voting import ballots, closing, results, rounds
from members.voting.refusals import Refused
from tests.inference.names.conftest import model
from tests.members.voting.conftest import (
    A,
    B,
    deadline_passes,
    guards_off,
    in_days,
    joined,
    with_options,
)
from tests.stack import ROOT
from tests.waiting import at_once

pytestmark = pytest.mark.django_db
RANKINGS = [[["keep"], [A]], [[A], ["keep"]], [[A], [B], ["keep"]], [[B]]]


@pytest.fixture
def voted(vote: Vote, voters: list[User]) -> Vote:
    for voter, ranking in zip(voters, RANKINGS, strict=True):
        ballots.cast(vote=vote, user=voter, ranking=ranking)
    return vote


def test_the_result(voted: Vote, over: Any) -> None:
    result = results.result(over(voted))
    assert (result.ballots, result.roll, result.quorum, result.quorum_met) == (4, 4, 2, True)
    assert result.options == ["keep", A, B]
    assert result.pairwise == [[0, 1, 2], [2, 0, 3], [2, 1, 0]]
    assert (result.winner, result.tied, result.first) == (A, [], [1, 2, 1])
    assert results.verdict(voted) == "alpha-7B wins."


def test_before_the_deadline_nobody_closes(voted: Vote) -> None:
    with pytest.raises(Refused, match="can't be closed early"):
        closing.close(vote=voted)
    closing.close_due()
    assert Ballot.objects.count() == 4
    voted.refresh_from_db()
    assert (voted.state, voted.result) == ("open", {})


def test_v7_closing_twice_has_one_effect(voted: Vote) -> None:
    deadline_passes(voted)
    Mail.objects.all().delete()
    for _ in range(3):
        advance_votes()
    assert not closing.close(vote=voted)
    assert Mail.objects.filter(kind="vote_result").count() == 4
    assert PublishedBallot.objects.count() == 4
    assert not Ballot.objects.exists()


def test_quorum_missed_keeps_the_current_model(vote: Vote, voters: list[User], over: Any) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    result = results.result(over(vote))
    assert (result.quorum, result.quorum_met, result.winner) == (2, False, "keep")


def test_nobody_voted(vote: Vote, over: Any) -> None:
    result = results.result(over(vote))
    assert (result.ballots, result.quorum_met, result.winner) == (0, False, "keep")


# -- Two beats, killed workers ------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_v7_two_beats_at_the_same_moment(voted: Vote) -> None:
    deadline_passes(voted)
    Mail.objects.all().delete()
    done = at_once([lambda: closing.close(vote=voted)] * 6)
    assert sorted(done) == [False] * 5 + [True]
    assert Mail.objects.filter(kind="vote_result").count() == 4
    assert PublishedBallot.objects.count() == 4


KILLED = """
import os, django; django.setup()
from members.models import Vote
from members.voting import closing
def wait(vote):
    print("counted", flush=True)
    import time; time.sleep(60)
closing._settle_proposals = wait
closing.close(vote=Vote.objects.get())
"""


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_in_the_middle_of_the_close_leaves_everything(voted: Vote) -> None:
    """After it has published, counted and erased, before it has committed."""
    deadline_passes(voted)
    found = connection.settings_dict
    url = "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**found)
    worker = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "nan.settings"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout
    assert worker.stdout.readline() == "counted\n"
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not closing.close(vote=voted):
        time.sleep(0.2)
    voted.refresh_from_db()
    assert (voted.state, voted.result["ballots"]) == ("closed", 4)
    assert PublishedBallot.objects.count() == 4
    assert Mail.objects.filter(kind="vote_result").count() == 4


@pytest.mark.django_db(transaction=True)
def test_ballots_that_are_stored_at_the_deadline_are_all_counted_or_all_refused(
    vote: Vote, voters: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Posts go on over the real deadline while a beat closes: no ballot is lost between them."""
    with_deadline(vote, seconds=1.5)
    taken: list[int] = []

    def post(voter: User) -> Any:
        def again_and_again() -> None:
            while True:
                ballots.cast(vote=vote, user=voter, ranking=[[A]])
                taken.append(voter.pk)

        def run() -> None:
            with pytest.raises(Refused) as refusal:
                again_and_again()
            assert refusal.value.code == "over"

        return run

    def beat() -> None:
        while Vote.objects.get(pk=vote.pk).is_open:
            closing.close_due()

    at_once([*(post(voter) for voter in voters), beat])
    vote.refresh_from_db()
    assert vote.result["ballots"] == PublishedBallot.objects.count() == len(set(taken)) == 4


@pytest.mark.django_db(transaction=True)
def test_a_ballot_under_way_at_the_close_is_waited_for(vote: Vote, voters: list[User]) -> None:
    """Stored before the deadline, committed after the close has begun."""
    with_deadline(vote, seconds=1)
    stored, commit = threading.Event(), threading.Event()

    def slow() -> None:
        from django.db import transaction

        with transaction.atomic():
            ballots.cast(vote=vote, user=voters[0], ranking=[[B]])
            stored.set()
            commit.wait(10)

    def close() -> bool:
        stored.wait(10)
        time.sleep(1.2)
        threading.Timer(1, commit.set).start()
        return closing.close(vote=vote)

    assert at_once([slow, close]) == [None, True]
    assert [row.ranking for row in PublishedBallot.objects.all()] == [[[B]]]


def with_deadline(vote: Vote, *, seconds: float) -> None:
    with guards_off():
        Vote.objects.filter(pk=vote.pk).update(
            closes_at=timezone.now() + timedelta(seconds=seconds)
        )
    vote.refresh_from_db()


# -- Nothing joins them -------------------------------------------------------------------------
def everything() -> dict[str, str]:
    return {
        f"{one._meta.label}": serialize("json", one._default_manager.all())
        for one in apps.get_models()
    }


def test_v6_no_row_joins_a_person_to_a_ballot(voted: Vote, voters: list[User], over: Any) -> None:
    receipts = dict(Ballot.objects.values_list("voter__user", "receipt"))
    assert len(receipts) == 4
    over(voted)
    rows = everything()
    for receipt in receipts.values():
        assert [name for name, text in rows.items() if str(receipt) in text] == [
            "members.PublishedBallot"
        ]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM members_ballot")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db(transaction=True)
def test_v6_postgres_own_columns_tell_nothing(slot: Slot, admin: User) -> None:
    """Neither the order on the disk nor transaction numbers follow the order of voting, and no
    other row carries the number of a transaction that stored a ballot."""
    voters = [joined(f"Voter{number}") for number in range(40)]
    vote = with_options(slot, voters[0], admin)
    vote = rounds.open_vote(vote=vote, actor=admin, closes_at=in_days(1))
    cast = []
    before = current_transaction()
    for voter in voters:
        ballots.cast(vote=vote, user=voter, ranking=[[A]])
        cast.append(Ballot.objects.get(voter__user=voter).receipt)
    after = current_transaction()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE members_ballot")
    assert marked_between(before, after)  # the linked ballots themselves, until the close
    closing.close(vote=deadline_passes(vote))
    assert marked_between(before, after) == []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT receipt, xmin::text, cmin::text FROM members_publishedballot ORDER BY ctid"
        )
        rows = cursor.fetchall()
        cursor.execute("SELECT pg_relation_size('members_ballot')")
        assert cursor.fetchone() == (0,)  # not even dead rows
        cursor.execute("SELECT count(*) FROM pg_stats WHERE tablename = 'members_ballot'")
        assert cursor.fetchone() == (0,)
    assert len({(xmin, cmin) for _, xmin, cmin in rows}) == 1
    on_disk = [receipt for receipt, _, _ in rows]
    assert sorted(on_disk) == sorted(cast)
    assert on_disk not in (cast, cast[::-1], sorted(cast))
    by_key = list(PublishedBallot.objects.order_by("pk").values_list("receipt", flat=True))
    assert by_key not in (cast, cast[::-1])


def current_transaction() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text")
        return int(cursor.fetchone()[0])


def marked_between(first: int, last: int) -> list[tuple[str, int]]:
    """Rows of any table that a transaction between these two wrote or locked."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(
                f'SELECT count(*) FROM "{table}" WHERE xmin::text::bigint BETWEEN %s AND %s'
                " OR xmax::text::bigint BETWEEN %s AND %s",
                [first, last, first, last],
            )
            if number := cursor.fetchone()[0]:
                found.append((table, number))
    return found


def test_no_sequence_counts_ballots(voted: Vote) -> None:
    with connection.cursor() as cursor:
        for table in ("members_ballot", "members_publishedballot"):
            assert connection.introspection.get_sequences(cursor, table) == []


def test_ballots_of_another_open_round_survive(
    voted: Vote, voters: list[User], admin: User, over: Any
) -> None:
    small = model("small-embed", kind="embedding")
    embed = Slot.objects.create(
        name="embed", title="Embeddings", number=2, kind="embedding", model=small
    )
    other = with_options(embed, voters[3], admin, slug="2026-Q4-embed")
    other = rounds.open_vote(vote=other, actor=admin, closes_at=in_days(1))
    ballots.cast(vote=other, user=voters[0], ranking=[[B], [A]])
    over(voted)
    assert ballots.mine(vote=other, user=voters[0]) == [[B], [A]]
    assert ballots.mine(vote=voted, user=voters[0]) is None
    assert ballots.cast(vote=other, user=voters[0], ranking=[[A]]).changed
    assert results.result(over(other)).ballots == 1
