"""Casting: one ballot for each voter on the roll, until the deadline."""

from typing import Any

import pytest
from django.db import connection

from members import membership
from members.models import Ballot, Mail, PublishedBallot, User, Vote
from members.voting import ballots, closing, receipts
from members.voting.refusals import Refused
from tests.members.voting.conftest import A, B, deadline_passes, guards_off, joined
from tests.people import applicant, person
from tests.waiting import at_once

pytestmark = pytest.mark.django_db
ALL = [["keep"], [A], [B]]


def refusal(vote: Vote, user: User, ranking: Any = ALL) -> str:
    with pytest.raises(Refused) as caught:
        ballots.cast(vote=vote, user=user, ranking=ranking)
    return caught.value.code


def test_a_ballot_is_stored_and_can_be_changed(vote: Vote, voters: list[User]) -> None:
    first = ballots.cast(vote=vote, user=voters[0], ranking=ALL)
    receipt = Ballot.objects.get().receipt
    second = ballots.cast(vote=vote, user=voters[0], ranking=[[B], ["keep", A]])
    assert (first.changed, second.changed) == (False, True)
    assert second.ranking == ballots.mine(vote=vote, user=voters[0]) == [[B], ["keep", A]]
    assert Ballot.objects.get().receipt == receipt


def test_a_retry_after_a_timeout_is_no_error(vote: Vote, voters: list[User]) -> None:
    for _ in range(3):
        ballots.cast(vote=vote, user=voters[0], ranking=ALL)
    assert Ballot.objects.count() == 1


def test_partial_and_equal_rankings_are_taken_in_one_form(vote: Vote, voters: list[User]) -> None:
    """The order in which she named equal options, and gaps between numbers, are not kept."""
    ranking = ballots.from_ranks({B: "7", A: " 7", "keep": ""})
    assert ballots.cast(vote=vote, user=voters[0], ranking=ranking).ranking == [[A, B]]


@pytest.mark.parametrize(
    ("ranking", "code"),
    [
        ([], "empty_ballot"),
        ([[], []], "empty_ballot"),
        ([[A], [A]], "bad_ballot"),
        ([[A, A]], "bad_ballot"),
        ([["nobody/knows-it"]], "bad_ballot"),
    ],
)
def test_what_is_no_ranking_stores_nothing(
    vote: Vote, voters: list[User], ranking: Any, code: str
) -> None:
    assert refusal(vote, voters[0], ranking) == code
    assert not Ballot.objects.exists()


@pytest.mark.parametrize("rank", ["0", "-1", "1.5", "one", "²", "1000", "９"])
def test_ranks_are_whole_numbers(rank: str) -> None:
    with pytest.raises(Refused, match="ranked once"):
        ballots.from_ranks({A: rank})


# -- Who --------------------------------------------------------------------------------------
def test_v4_who_is_not_on_the_roll_is_refused_with_the_reason(
    vote: Vote, voters: list[User], admin: User, seats: Any
) -> None:
    late = joined("Late")
    waiting = applicant("Wanda").user
    unconfirmed = applicant("Uma", confirmed=False)
    unconfirmed.state = "approved"
    unconfirmed.save()
    membership.suspend(membership=voters[1].membership, actor=admin, reason="x")
    membership.leave(user=voters[2])
    people = [late, waiting, unconfirmed.user, voters[1], voters[2], person("Otto"), admin]
    codes = [refusal(vote, User.objects.get(pk=who.pk)) for who in people]
    assert codes == [
        "not_on_roll",
        "waiting",
        "unconfirmed",
        "suspended",
        "left",
        "not_member",
        "not_member",
    ]
    assert not Ballot.objects.exists()
    assert vote.roll_size == 4


def test_who_left_after_voting_is_counted(vote: Vote, voters: list[User], over: Any) -> None:
    """The roll stands: neither the ballot nor the denominator changes."""
    ballots.cast(vote=vote, user=voters[0], ranking=ALL)
    membership.leave(user=voters[0])
    User.objects.get(pk=voters[0].pk).delete()
    over(vote)
    assert (vote.result["ballots"], vote.result["roll"]) == (1, 4)


def test_reinstated_members_vote_again(vote: Vote, voters: list[User], admin: User) -> None:
    membership.suspend(membership=voters[0].membership, actor=admin, reason="x")
    membership.reinstate(membership=voters[0].membership, actor=admin)
    assert not ballots.cast(vote=vote, user=voters[0], ranking=ALL).changed


# -- When -------------------------------------------------------------------------------------
def test_one_second_late_is_refused_with_no_task_running(vote: Vote, voters: list[User]) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=ALL)
    deadline_passes(vote)
    assert vote.state == "open"
    assert refusal(vote, voters[0], [[B]]) == "over"
    assert refusal(vote, voters[1]) == "over"
    closing.close(vote=vote)
    assert [row.ranking for row in PublishedBallot.objects.all()] == [ALL]


def test_before_and_after(prepared: Vote, voters: list[User]) -> None:
    assert refusal(prepared, voters[0]) == "not_open"


def test_a_rolled_back_clock_of_the_web_host_changes_nothing(
    vote: Vote, voters: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Postgres's clock is asked."""
    deadline_passes(vote)
    monkeypatch.setattr("django.utils.timezone.now", lambda: vote.opened_at)
    assert refusal(vote, voters[0]) == "over"


# -- Receipts -----------------------------------------------------------------------------------
def test_the_receipt_is_shown_once_after_each_cast(vote: Vote, voters: list[User]) -> None:
    seen = []
    for _ in range(2):
        ballots.cast(vote=vote, user=voters[0], ranking=ALL)
        seen += [ballots.show_receipt(vote=vote, user=voters[0]) for _ in range(2)]
    receipt = Ballot.objects.get().receipt
    assert seen == [receipt, None, receipt, None]


def test_two_never_have_the_same_receipt(
    vote: Vote, voters: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter([7, 7, 7, 9])
    monkeypatch.setattr(receipts, "draw", lambda: next(drawn))
    for voter in voters[:2]:
        ballots.cast(vote=vote, user=voter, ranking=ALL)
    assert sorted(Ballot.objects.values_list("receipt", flat=True)) == [7, 9]


def test_the_mail_row_holds_no_words_and_goes_at_the_close(
    vote: Vote, voters: list[User], over: Any
) -> None:
    with pytest.raises(Refused):
        ballots.mail_receipt(vote=vote, user=voters[0])
    ballots.cast(vote=vote, user=voters[0], ranking=ALL)
    ballots.mail_receipt(vote=vote, user=voters[0])
    row = Mail.objects.get(kind="vote_receipt")
    assert row.params == {"vote": vote.pk}
    over(vote)
    assert not Mail.objects.filter(kind="vote_receipt").exists()


# -- Twenty at once -----------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_twenty_parallel_posts_are_one_ballot(vote: Vote, voters: list[User]) -> None:
    choices = [[["keep"], [A]], [[A], [B]], [[B]], [[A, B]]]

    def post(number: int) -> Any:
        return lambda: ballots.cast(vote=vote, user=voters[0], ranking=choices[number % 4])

    answers = at_once([post(number) for number in range(20)])
    assert [answer.changed for answer in answers].count(False) == 1
    stored = Ballot.objects.get()
    assert ballots.mine(vote=vote, user=voters[0]) == stored.ranking
    assert stored.ranking in choices
    ballots.cast(vote=vote, user=voters[1], ranking=ALL)
    closing.close(vote=deadline_passes(vote))
    vote.refresh_from_db()
    assert vote.result["ballots"] == PublishedBallot.objects.count() == 2
    published = PublishedBallot.objects.get(receipt=stored.receipt)
    assert published.ranking == stored.ranking


OWN_TEXT = """
SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()
  AND %(vote)s > 0 AND %(user)s > 0 AND %(ranking)s IS NOT NULL AND %(receipt)s >= 0
"""


def test_the_statement_holds_no_choice_in_its_text(
    vote: Vote, voters: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres logs the text of what fails: with the values in it, it would join both."""
    monkeypatch.setattr(ballots, "CAST", OWN_TEXT)
    seen = ballots._store(vote, voters[0], ALL)[0]
    assert A not in seen
    assert "$3" in seen


def test_postgres_refuses_ballots_that_are_put_in_by_hand(vote: Vote, voters: list[User]) -> None:
    with guards_off():
        Vote.objects.filter(pk=vote.pk).update(state="closed")
    entry = vote.roll.get(user=voters[0])
    with pytest.raises(Exception, match="this vote is not open"), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO members_ballot (voter_id, vote_id, ranking, receipt, receipt_shown)"
            " VALUES (%s, %s, '[]', 1, false)",
            [entry.pk, vote.pk],
        )
