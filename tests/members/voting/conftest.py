"""A slot that serves a model, members, and rounds in every state."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone, translation

from inference.models import CatalogModel, Goal, Replica, Server, Slot
from members.models import Application, Candidate, Membership, Proposal, User, Vote
from members.voting import closing, proposals, rounds, shortlist
from tests.inference.names.conftest import model
from tests.people import person

A, B = "acme/alpha-7B", "acme/beta-32B"


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    with translation.override("en"):
        yield


@pytest.fixture
def running(db: None) -> CatalogModel:
    return model("now-one", capabilities=["tools", "vision"])


@pytest.fixture
def slot(running: CatalogModel) -> Slot:
    from inference.names import life

    found = Slot.objects.create(name="nan", title="Chat", number=1, model=running)
    life.claim_slot_name(found)
    return found


@pytest.fixture
def replica(slot: Slot) -> Replica:
    server = Server.objects.create(
        name="gpu-9", seats=100, gpus=[{"index": 0, "name": "A card", "total_mib": 98_304}]
    )
    return Replica.objects.create(
        slot=slot,
        server=server,
        number=1,
        gpus=[0],
        port=8101,
        model=slot.model,
        goal=Goal.SERVE,
        goal_model=slot.model,
    )


def joined(name: str, **fields: Any) -> User:
    """A member, by the shortest way."""
    user = person(name, **fields)
    Application.objects.create(user=user, state="approved", builds="x", tokens_per_day="to-10m")
    Membership.objects.create(user=user)
    return User.objects.get(pk=user.pk)


@pytest.fixture
def voters(db: None) -> list[User]:
    return [joined(name) for name in ("Ana", "Bea", "Carla", "Diego")]


@pytest.fixture
def prepared(slot: Slot, voters: list[User], admin: User) -> Vote:
    """Three options, nothing open yet."""
    return with_options(slot, voters[0], admin)


def with_options(slot: Slot, proposer: User, admin: User, slug: str = "2026-Q4") -> Vote:
    vote = rounds.prepare(slot=slot, slug=slug, actor=admin)
    for repo in (A, B):
        proposal = proposals.propose(user=proposer, slot=slot, repo=repo, reason="Try it.")
        shortlist.accept(proposal=proposal, vote=vote, actor=admin)
    return vote


def in_days(number: float) -> Any:
    return timezone.now() + timedelta(days=number)


@pytest.fixture
def vote(prepared: Vote, admin: User) -> Vote:
    """Open for a week."""
    return rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(7))


@contextmanager
def guards_off() -> Any:
    """Tests move time by moving rows, which Postgres itself would refuse."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE members_vote DISABLE TRIGGER USER")
        yield
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE members_vote ENABLE TRIGGER USER")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def deadline_passes(vote: Vote, seconds: float = 1) -> Vote:
    """The deadline was so long ago."""
    now = timezone.now()
    with guards_off():
        Vote.objects.filter(pk=vote.pk).update(
            opened_at=now - timedelta(days=7), closes_at=now - timedelta(seconds=seconds)
        )
    vote.refresh_from_db()
    return vote


@pytest.fixture
def over() -> Callable[[Vote], Vote]:
    def close(vote: Vote) -> Vote:
        assert closing.close(vote=deadline_passes(vote))
        vote.refresh_from_db()
        return vote

    return close


def candidate(vote: Vote, code: str) -> Candidate:
    return vote.candidates.get(code=code)


def proposal_of(repo: str) -> Proposal:
    return Proposal.objects.get(repo=repo)
