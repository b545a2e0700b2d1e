"""Applying, and what admins decide about it.

Every decision takes a batch: one or two hundred cost the same number of queries. Two admins who
decide about the same person at once make one transition: the second is told who was first.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from members import mails, membership, seats
from members.models import Application, Decision, User
from nan.leaks import complaint

BATCH_LIMIT = 200
BANDS = (20, 50, 100, 200)
APPROVALS_LOCK = 20_241_101
"""Advisory lock: approvals count free seats one after the other."""

State = Application.State
Action = Decision.Action


class Refused(Exception):
    """Not possible, for a reason that the person who asked should read."""


class NoSeats(Exception):
    """More approvals than free seats; repeat with `beyond_capacity` to go on all the same."""

    def __init__(self, *, wanted: int, free: int) -> None:
        super().__init__(f"{wanted} wanted, {free} free")
        self.wanted = wanted
        self.free = free


@dataclass
class Outcome:
    """What a batch did: its decisions, and the applications somebody else had decided before."""

    decisions: list[Decision]
    already: list[Application] = field(default_factory=list)
    batch: uuid.UUID = field(default_factory=uuid.uuid4)


# -- What she does ----------------------------------------------------------------------------
def apply(*, user: User, **answers: Any) -> Application:
    """Puts her on the waitlist. Asking twice gives the entry that is there already."""
    current = latest(user)
    if current and current.is_open:
        return current
    if current and current.state == State.APPROVED:
        raise Refused(_("Your application is approved already."))
    if current and undecided(current):
        raise Refused(_("Your application is being decided. Please look again in a few minutes."))
    try:
        with transaction.atomic():
            application = Application.objects.create(user=user, **answers)
    except IntegrityError:  # a second click was faster
        return Application.objects.waiting().get(user=user)
    seats.changed()
    return application


def edit(*, application: Application, **answers: Any) -> Application:
    """Changes her answers; she keeps her place."""
    changed = Application.objects.waiting().filter(pk=application.pk)
    if not changed.update(edited_at=timezone.now(), **answers):
        raise Refused(_("Your application has been decided and can't be changed any more."))
    application.refresh_from_db()
    return application


def answer(*, application: Application, text: str) -> Application:
    """Answers our question; she is waiting again, at her old place."""
    asked = Application.objects.filter(pk=application.pk, state=State.NEEDS_INFORMATION)
    if not asked.update(state=State.PENDING, answer=text, edited_at=timezone.now()):
        raise Refused(_("There is no open question any more."))
    application.refresh_from_db()
    return application


def withdraw(*, application: Application) -> Application:
    if not Application.objects.waiting().filter(pk=application.pk).update(state=State.WITHDRAWN):
        raise Refused(_("Your application has been decided and can't be withdrawn any more."))
    seats.changed()
    application.refresh_from_db()
    return application


def latest(user: User) -> Application | None:
    return user.applications.order_by("-pk").first()


def undecided(application: Application) -> bool:
    """Rejected, but it can still be undone: to her it looks as if she were waiting."""
    if application.state != State.REJECTED:
        return False
    return Decision.objects.undoable().filter(application=application).exists()


def place(application: Application) -> int | None:
    """The band she is in: among the next 20, 50…; None beyond the last one.

    A band, not a promise: admins also look at what fits. Costs the same however many wait.
    """
    ahead = Application.objects.waiting().filter(pk__lt=application.pk).in_order()
    position = ahead[: BANDS[-1]].count() + 1
    return next((band for band in BANDS if position <= band), None)


# -- What admins do ---------------------------------------------------------------------------
@transaction.atomic
def approve(
    *, applications: Iterable[int], actor: User | None, beyond_capacity: bool = False
) -> Outcome:
    """Lets these people in: members at once if confirmed, else as soon as they confirm."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [APPROVALS_LOCK])
    claimed, outcome = _claim(applications)
    free = seats.count().free
    if len(claimed) > free and not beyond_capacity:
        raise NoSeats(wanted=len(claimed), free=free)
    _decide(outcome, claimed, action=Action.APPROVE, to=State.APPROVED, actor=actor)
    users = [application.user_id for application in claimed]
    membership.let_back_in(users=users)
    active = {row.user_id for row in membership.begin(approved=users)}
    mails.place_ready(d for d in outcome.decisions if d.application.user_id not in active)
    return outcome


@transaction.atomic
def reject(
    *, applications: Iterable[int], actor: User | None, reason_code: str, reason: str = ""
) -> Outcome:
    """Needs a reason she can read: one of the templates, or typed words."""
    if reason_code not in Decision.Reason.values:
        raise Refused(_("Choose a reason: she will read it."))
    if reason_code == Decision.Reason.OTHER and not reason.strip():
        raise Refused(_("Write the reason in your own words: she will read it."))
    _look_for_keys(reason)
    claimed, outcome = _claim(applications)
    why = {"reason_code": reason_code, "reason": reason.strip()}
    _decide(outcome, claimed, action=Action.REJECT, to=State.REJECTED, actor=actor, **why)
    mails.rejected(outcome.decisions)
    return outcome


@transaction.atomic
def ask(*, application: int, actor: User | None, question: str) -> Outcome:
    """Asks her something; the mail goes out at once."""
    if not question.strip():
        raise Refused(_("Write the question."))
    _look_for_keys(question)
    claimed, outcome = _claim([application], states=(State.PENDING,))
    why = {"reason": question.strip()}
    _decide(outcome, claimed, action=Action.ASK, to=State.NEEDS_INFORMATION, actor=actor, **why)
    for decision in outcome.decisions:
        Application.objects.filter(pk=application).update(question=question.strip(), answer="")
        mails.question(decision)
    return outcome


def _look_for_keys(text: str) -> None:
    if told := complaint(text):
        raise Refused(told)


@transaction.atomic
def undo(*, decisions: Iterable[int], actor: User | None) -> list[Decision]:
    """Takes back approvals and rejections that are not final: state, membership, key and mail."""
    rows = list(
        Decision.objects.undoable()
        .filter(pk__in=list(decisions))
        .select_related("application__user")
        .order_by("pk")
        .select_for_update(of=("self", "application"))
    )
    rows = [row for row in rows if row.application.state == row.to_state]
    _refuse_suspended(rows)
    _restore(rows)
    now = timezone.now()
    Decision.objects.filter(pk__in=[row.pk for row in rows]).update(undone_at=now, undone_by=actor)
    _take_back(rows, actor)
    transaction.on_commit(seats.changed)
    return rows


def _refuse_suspended(rows: Sequence[Decision]) -> None:
    """Without a membership nobody could reinstate her: she would be shut out for good."""
    users = [row.application.user_id for row in rows if row.action == Action.APPROVE]
    names = membership.lock_suspended(users=users)
    if names:
        raise Refused(
            _("Not undone: %(who)s is suspended. Reinstate her first, then undo.")
            % {"who": ", ".join(names)}
        )


def _restore(rows: Sequence[Decision]) -> None:
    for state in Application.OPEN:
        pks = [row.application_id for row in rows if row.from_state == state]
        Application.objects.filter(pk__in=pks).update(state=state)


def _take_back(rows: Sequence[Decision], actor: User | None) -> None:
    users = {
        action: [r.application.user_id for r in rows if r.action == action] for action in Action
    }
    if users[Action.APPROVE]:
        membership.take_back(users=users[Action.APPROVE], actor=actor, reason="approval undone")
    mails.cancel(users=users[Action.REJECT], kinds=[mails.Kind.REJECTED])


def _claim(
    pks: Iterable[int], *, states: Sequence[str] = Application.OPEN
) -> tuple[list[Application], Outcome]:
    """Locks the rows in one order and parts them: still undecided, and decided by someone else."""
    chosen = list(pks)
    if len(chosen) > BATCH_LIMIT:
        raise Refused(_("At most %(limit)d at a time.") % {"limit": BATCH_LIMIT})
    rows = list(
        Application.objects.filter(pk__in=chosen)
        .select_related("user")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    claimed = [row for row in rows if row.state in states]
    return claimed, Outcome(decisions=[], already=[row for row in rows if row.state not in states])


def _decide(
    outcome: Outcome,
    claimed: Sequence[Application],
    *,
    action: str,
    to: str,
    actor: User | None,
    **why: str,
) -> None:
    now = timezone.now()
    undo_seconds = 0 if action == Action.ASK else settings.UNDO_SECONDS
    outcome.decisions = Decision.objects.bulk_create(
        Decision(
            application=application,
            actor=actor,
            action=action,
            from_state=application.state,
            to_state=to,
            batch=outcome.batch,
            at=now,
            final_at=now + timedelta(seconds=undo_seconds),
            **why,
        )
        for application in claimed
    )
    Application.objects.filter(
        pk__in=[row.pk for row in claimed], state__in=Application.OPEN
    ).update(state=to)
    transaction.on_commit(seats.changed)


def who_decided(applications: Iterable[Application]) -> dict[int, Decision]:
    """The decision that stands for each of these, for "Bob approved her two minutes ago"."""
    decisions = Decision.objects.filter(application__in=list(applications), undone_at=None)
    rows = decisions.select_related("actor", "application__user").order_by("pk")
    return {row.application_id: row for row in rows}
