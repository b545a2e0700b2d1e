"""What an admin had before her when she pressed a button of a round that is being prepared."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from members.models import Vote
from members.voting.refusals import Refused
from members.voting.shortlist import preparing
from nan import stale

RULES = ("quorum_percent", "public_result", "opens_at", "closes_at")


def mark(vote: Vote) -> str:
    """Of its rules, its dates and its options."""
    options = vote.candidates.order_by("position").values_list("code", flat=True)
    return stale.mark([stale.digest(vote, RULES), list(options)])


@contextmanager
def as_seen(
    vote: Vote, sent: str | None, wanted: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """Nobody else changes the round meanwhile. Raises Refused if somebody has since `sent`, the
    mark of the page with the button; None: who asks says nothing about it. Where it is all as
    `wanted` already, it was her own first click."""
    with transaction.atomic():
        row = preparing(vote)
        there = wanted and all(getattr(row, name) == value for name, value in wanted.items())
        if sent not in (None, mark(row)) and not there:
            raise Refused("changed_meanwhile")
        yield
