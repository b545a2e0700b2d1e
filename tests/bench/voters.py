"""Runs with Django inside a stack's settings: an open vote and its voters, as JSON.

Verbs: open N | close N (with so many ballots) | reader N. Called through `tests.bench.inside`.
"""

import json
import random
import time
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from inference.models import CatalogModel, Slot
from members.models import Application, Candidate, Membership, User, Vote
from members.voting import closing, receipts, rounds
from tests.bench.rows import person, session

SLUG = "bench"
OPTIONS = 10
FILL = """
INSERT INTO members_ballot (voter_id, vote_id, ranking, receipt, receipt_shown)
VALUES (%s, %s, %s::jsonb, %s, true)
"""


def open(count: int) -> dict[str, Any]:
    """Sessions of the voters, and the names of the fields of the ballot."""
    slot = _slot()
    people = [_member(number) for number in range(count)]
    vote = rounds.prepare(slot=slot, slug=SLUG, actor=None)
    for number in range(1, OPTIONS):
        repo = f"bench/option-{number}"
        Candidate.objects.create(vote=vote, position=number, code=repo, title=repo, repo=repo)
    rounds.open_vote(vote=vote, actor=None, closes_at=timezone.now() + timedelta(days=1))
    return {"sessions": [session(user) for user in people], "options": vote.codes}


def reader(count: int) -> dict[str, Any]:
    members = User.objects.filter(membership__state="active").order_by("pk")[:count]
    return {"sessions": [session(user) for user in members]}


def _slot() -> Slot:
    model = CatalogModel.objects.create(
        name="bench-model", title="Bench", repo="bench/now", revision="a" * 40, licence="mit",
        weights_mib=1, context_length=32_768,
    )  # fmt: skip
    return Slot.objects.create(name="bench", title="Bench", number=8, model=model)


@transaction.atomic
def _member(number: int) -> User:
    user = person(f"voter{number}")
    Application.objects.create(user=user, state="approved", builds="x", tokens_per_day="to-10m")
    Membership.objects.create(user=user)
    return user


def close(count: int) -> dict[str, Any]:
    """Fills up to `count` ballots of voters that nobody knows, and closes; seconds of the close."""
    vote = Vote.objects.get(slug=SLUG)
    rng, codes = random.Random(1), vote.codes
    rows = [(-number, vote.pk, _ranking(rng, codes), receipts.draw()) for number in range(1, count)]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(FILL, rows)
        cursor.execute("ALTER TABLE members_vote DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE members_vote SET opened_at = now() - interval '1 day',"
            " closes_at = clock_timestamp() WHERE id = %s",
            [vote.pk],
        )
        cursor.execute("ALTER TABLE members_vote ENABLE TRIGGER USER")
    began = time.perf_counter()
    closing.close_due()
    taken = time.perf_counter() - began
    vote.refresh_from_db()
    return {"seconds": taken, "state": vote.state, "ballots": vote.result.get("ballots")}


def _ranking(rng: random.Random, codes: list[str]) -> str:
    return json.dumps([[code] for code in rng.sample(codes, rng.randint(1, len(codes)))])


VERBS = {verb.__name__: verb for verb in (open, close, reader)}
