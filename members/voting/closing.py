"""The close: one transaction that publishes the ballots, counts them, and erases their voters.

It waits for ballots that are being stored, and none is stored while it runs. Broken off anywhere,
nothing has happened, and the next beat does it; done, there is nothing more to do.
"""

import structlog
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet

from members import mails
from members.models import Candidate, Proposal, PublishedBallot, Vote
from members.voting import results
from members.voting.clock import Moment, moment
from members.voting.refusals import Refused

log = structlog.get_logger(__name__)

LOCK = """
SET LOCAL lock_timeout = '5s';
LOCK TABLE members_ballot IN ACCESS EXCLUSIVE MODE
"""
"""Waits for every ballot under way; who comes later waits, and then finds the vote closed."""

PUBLISH = """
INSERT INTO members_publishedballot (id, vote_id, receipt, ranking)
SELECT gen_random_uuid(), vote_id, receipt, ranking FROM members_ballot
WHERE vote_id = %s ORDER BY gen_random_uuid()
"""
"""One statement: all rows carry one transaction and one command, in an order that Postgres's strong
randomness has shuffled."""

ERASE = """
CREATE TEMPORARY TABLE other_ballots AS
  SELECT * FROM members_ballot WHERE vote_id <> %s ORDER BY gen_random_uuid();
TRUNCATE members_ballot;
INSERT INTO members_ballot SELECT * FROM other_ballots;
DROP TABLE other_ballots
"""
"""Truncating drops the file and its indexes: a deleted row would lie in it until a vacuum. Ballots
of other open rounds are put back."""


def close_due() -> int:
    """Every round whose deadline is over; a round that fails does not hold up the others."""
    closed = 0
    for vote in _due().order_by("pk"):
        try:
            closed += close(vote=vote)
        except OperationalError:  # somebody holds the table: the next beat
            log.warning("vote_not_closed", vote=vote.slug, code="busy")
    return closed


def close(*, vote: Vote) -> bool:
    """True for the one call that did it. Raises Refused before the deadline."""
    if not _due().filter(pk=vote.pk).exists():
        return _not_due(vote)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(LOCK)
        row = _due().filter(pk=vote.pk).select_for_update(of=("self",)).first()
        if row is None:
            return False
        _publish_and_erase(row)
        _count(row)
        _settle_proposals(row)
        mails.forget_receipts(row)
        mails.vote_result(row)
    log.info("vote_closed", vote=row.slug)
    return True


def _due() -> "QuerySet[Vote]":
    return Vote.objects.open().filter(closes_at__lte=Moment())


def _not_due(vote: Vote) -> bool:
    vote.refresh_from_db()
    if vote.state == Vote.State.OPEN:
        raise Refused("before_deadline")
    if not vote.is_over:
        raise Refused("not_open")
    return False


def _publish_and_erase(vote: Vote) -> None:
    with connection.cursor() as cursor:
        cursor.execute(PUBLISH, [vote.pk])
        cursor.execute(ERASE, [vote.pk])


def _count(vote: Vote) -> None:
    ballots = list(PublishedBallot.objects.filter(vote=vote).values_list("receipt", "ranking"))
    result = results.counted(vote, ballots)
    vote.result, vote.ballots_digest = result.to_json(), result.digest
    vote.state, vote.closed_at = Vote.State.CLOSED, moment()
    vote.save(update_fields=["result", "ballots_digest", "state", "closed_at"])


def _settle_proposals(vote: Vote) -> None:
    """They count no longer as open; what was not chosen can be proposed again."""
    voted = Candidate.objects.filter(vote=vote, proposal__isnull=False).values("proposal")
    Proposal.objects.filter(pk__in=voted, state=Proposal.State.SHORTLISTED).update(
        state=Proposal.State.VOTED
    )


def tidy() -> None:
    """Receipt mails that were under way at the close, and are sent now: their rows go too."""
    for vote in Vote.objects.over().order_by("-pk")[:5]:
        mails.forget_receipts(vote)
