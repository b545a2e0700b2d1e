"""Casting a ballot: one for each voter, changeable until the deadline.

The deadline, the roll and the membership are checked by the statement that stores the ballot, so
there is no moment between the check and the deed. What is stored goes to Postgres apart from the
statement's text: should the statement fail, Postgres logs its text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import psycopg.errors
from django.db import connection, transaction
from psycopg.types.json import Jsonb

from members import mails
from members.models import Ballot, Membership, RollEntry, User, Vote
from members.tally import Ranking, unspell
from members.voting import receipts, rounds
from members.voting.refusals import Refused, words

DRAWS = 5
CAST = """
WITH vote AS (
  SELECT id FROM members_vote
  WHERE id = %(vote)s AND state = 'open' AND clock_timestamp() < closes_at
), voter AS (
  SELECT roll.id FROM members_rollentry roll
  JOIN vote ON roll.vote_id = vote.id
  JOIN members_membership membership ON membership.user_id = roll.user_id
  JOIN members_user person ON person.id = roll.user_id
  WHERE roll.user_id = %(user)s AND membership.state = 'active' AND person.is_active
)
INSERT INTO members_ballot (voter_id, vote_id, ranking, receipt, receipt_shown)
SELECT voter.id, %(vote)s, %(ranking)s, %(receipt)s, false FROM voter
ON CONFLICT (voter_id) DO UPDATE SET ranking = EXCLUDED.ranking, receipt_shown = false
RETURNING ranking, (xmax::text <> '0')
"""
"""Holds the table of ballots until it is committed, and the close holds it whole: this waits for
that, or that for this. The receipt of a first ballot stands: whichever of two posts is the later,
the words she wrote down are right."""


@dataclass(frozen=True)
class Cast:
    ranking: Ranking
    changed: bool
    """A ballot of hers was there before."""


@dataclass(frozen=True)
class Standing:
    """Whether she may vote now; if not, why. `on_roll` alone is no permission."""

    code: str
    on_roll: bool

    @property
    def may_vote(self) -> bool:
        return not self.code

    @property
    def words(self) -> str:
        return words(self.code) if self.code else ""


def cast(*, vote: Vote, user: User, ranking: Ranking) -> Cast:
    """Repeating it is no error: the last one counts."""
    stored = checked(vote, ranking)
    for _ in range(DRAWS):
        try:
            with transaction.atomic():
                found = _store(vote, user, stored)
        except psycopg.errors.UniqueViolation:
            continue  # somebody has this receipt: another draw
        if found is None:
            raise Refused(standing(vote=vote, user=user).code or "over")
        return Cast(ranking=_loaded(found[0]), changed=found[1])
    raise RuntimeError("no free receipt was drawn")


def _store(vote: Vote, user: User, ranking: list[list[str]]) -> Any:
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        values = {
            "vote": vote.pk,
            "user": user.pk,
            "ranking": Jsonb(ranking),
            "receipt": receipts.draw(),
        }
        return cursor.execute(CAST, values).fetchone()


def _loaded(ranking: Any) -> Ranking:
    """Django's connections leave JSON as text."""
    found: Ranking = json.loads(ranking) if isinstance(ranking, str) else ranking
    return found


def checked(vote: Vote, ranking: Ranking) -> list[list[str]]:
    """In the one form that is stored: nothing of how she ordered equal options remains."""
    places = {code: number for number, code in enumerate(vote.codes)}
    groups = [list(group) for group in ranking if group]
    named = [code for group in groups for code in group]
    if not named:
        raise Refused("empty_ballot")
    if len(set(named)) != len(named) or not set(named) <= set(places):
        raise Refused("bad_ballot")
    return [sorted(group, key=lambda code: places[code]) for group in groups]


def from_ranks(ranks: Mapping[str, str]) -> Ranking:
    """From numbered choices, an empty one being unranked; equal numbers are equal."""
    chosen = {code: rank.strip() for code, rank in ranks.items()}
    for rank in filter(None, chosen.values()):
        if not (rank.isascii() and rank.isdigit() and 0 < int(rank) < 1000):
            raise Refused("bad_ballot")
    return unspell(tuple(chosen), tuple(chosen.values()))


def mine(*, vote: Vote, user: User) -> Sequence[Sequence[str]] | None:
    """The ballot that is stored. After the close there is none that is hers."""
    row = Ballot.objects.filter(vote=vote, voter__user=user).first()
    return row.ranking if row else None


def receipt_waits(*, vote: Vote, user: User) -> bool:
    """It was not shown since she cast the ballot."""
    return Ballot.objects.filter(vote=vote, voter__user=user, receipt_shown=False).exists()


def show_receipt(*, vote: Vote, user: User) -> int | None:
    """Once after each cast; None when it was shown, or when the link is gone."""
    with transaction.atomic():
        hers = Ballot.objects.filter(vote=vote, voter__user=user, receipt_shown=False)
        row = hers.select_for_update(of=("self",)).first()
        if row is None:
            return None
        Ballot.objects.filter(pk=row.pk).update(receipt_shown=True)
        return row.receipt


def mail_receipt(*, vote: Vote, user: User) -> None:
    """The row of the mail names the round only; the words are read when it is sent."""
    if not Ballot.objects.filter(vote=vote, voter__user=user).exists():
        raise Refused("no_ballot")
    mails.vote_receipt(vote, user)


def standing(*, vote: Vote, user: User) -> Standing:
    """By the database's clock at this moment."""
    on_roll = RollEntry.objects.filter(vote=vote, user=user).exists()
    return Standing(code=_of_vote(vote) or _of_person(user, on_roll), on_roll=on_roll)


def _of_vote(vote: Vote) -> str:
    row = Vote.objects.filter(pk=vote.pk)
    if row.filter(state__in=(Vote.State.PREPARING, Vote.State.CANCELLED)).exists():
        return "not_open"
    return "" if rounds.taking_ballots(vote) else "over"


def _of_person(user: User, on_roll: bool) -> str:
    membership = Membership.objects.filter(user=user).first()
    if membership is None:
        application = user.applications.order_by("-pk").first()
        approved = application is not None and application.state == "approved"
        return "unconfirmed" if approved else "waiting" if application else "not_member"
    if membership.state != Membership.State.ACTIVE:
        return str(membership.state)
    if not user.is_active:
        return "suspended"
    return "" if on_roll else "not_on_roll"
