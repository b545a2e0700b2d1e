"""One function for each mail: it puts a row into the outbox, and nothing else.

Called inside the transaction of what the mail tells about, so that both happen or neither. `dedupe`
says what makes two requests the same mail; Postgres keeps one row for each.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone, translation

from inference.models import Alert, PublicName
from members.models import Decision, Mail, Membership, Proposal, User, Vote
from nan.celery import enqueue

SAME_MAIL_SECONDS = 180
"""A stranger who presses *send again* causes at most one mail to an address in this time…"""
MAILS_PER_DAY = 10
"""…and at most so many of one kind in a day."""
APART = timedelta(milliseconds=100)
"""Between mails to everybody: others, which somebody waits for, go out in between."""
CONFIRM_LIMIT = (5, timedelta(minutes=10))
"""Every new sign-up has a link of its own; so many may follow each other at once."""

Kind = Mail.Kind


def language_of(user: User | None) -> str:
    return (user and user.language) or translation.get_language() or settings.LANGUAGE_CODE


def _row(
    kind: str, *, user: User, dedupe: str, due_at: datetime | None = None, **params: object
) -> Mail:
    return Mail(
        kind=kind,
        user=user,
        to=user.email,
        language=language_of(user),
        dedupe=_digest(dedupe),
        due_at=due_at or timezone.now(),
        params=params,
    )


def _digest(text: str) -> str:
    """One length for all, however long the address in it is."""
    return hashlib.sha256(text.encode()).hexdigest()


def _put(rows: Iterable[Mail]) -> None:
    """Inserts what is not there yet and asks a worker to send at once what is due."""
    rows = list(rows)
    Mail.objects.bulk_create(rows, ignore_conflicts=True)
    _publish(rows)


def _publish(rows: Iterable[Mail]) -> None:
    now = timezone.now()
    due = [row.message_id for row in rows if row.due_at <= now]
    for message_id in due[:50]:  # more than that is the sweep's work
        enqueue("members.tasks.send_mail", str(message_id))


def _put_limited(row: Mail) -> None:
    """For mails that anybody can cause by typing an address."""
    day_ago = timezone.now() - timedelta(days=1)
    sent = Mail.objects.filter(to=row.to, kind=row.kind, created_at__gt=day_ago).count()
    if sent < MAILS_PER_DAY:
        _put([row])


def _window() -> int:
    return int(time.time() // SAME_MAIL_SECONDS)


def confirm(address: EmailAddress) -> None:
    """To a new account, or to an account that wants this address instead of its confirmed one."""
    change = EmailAddress.objects.filter(user=address.user, verified=True).exists()
    row = _row(
        Kind.NEW_ADDRESS if change else Kind.CONFIRM,
        user=address.user,
        dedupe=f"confirm:{address.pk}:{_window()}",
        address=address.pk,
    )
    row.to = address.email
    if change or may_confirm(address.email):
        _put_limited(row)


def may_confirm(email: str) -> bool:
    """May one more link for a sign-up go to this address now?"""
    limit, span = CONFIRM_LIMIT
    now = timezone.now()
    mailed = Mail.objects.filter(to=email.lower(), kind=Kind.CONFIRM)
    recent = mailed.filter(created_at__gt=now - span).count()
    return recent < limit and (
        mailed.filter(created_at__gt=now - timedelta(days=1)).count() < MAILS_PER_DAY
    )


def orphan(*, users: Iterable[int]) -> None:
    """These accounts are about to go: what was mailed stays noted, what was not is not sent."""
    users = list(users)
    cancel(users=users, kinds=Kind.values)
    Mail.objects.filter(user__in=users).update(user=None)


def adopt(user: User) -> None:
    """Mails to her address from before her account: they show, and go, with hers."""
    Mail.objects.filter(to=user.email, user=None).update(user=user)


def account_exists(user: User) -> None:
    """Someone tried to sign up with an address that has an account; only its owner is told."""
    _put_limited(_row(Kind.ACCOUNT_EXISTS, user=user, dedupe=f"exists:{user.pk}:{_window()}"))


def reset_password(user: User) -> None:
    _put_limited(_row(Kind.RESET, user=user, dedupe=f"reset:{user.pk}:{_window()}"))


def to_nobody(email: str) -> None:
    """The work of `reset_password` for an address without an account, of which nothing stays.

    Without it the time of the answer would tell who has an account.
    """
    row = Mail(kind=Kind.RESET, to=email, language="", dedupe=_digest(f"reset:{email}:{_window()}"))
    with transaction.atomic():
        _put_limited(row)
        transaction.set_rollback(True)
    _publish([row])


def security(user: User, *, what: str, to: str) -> None:
    """`what` is the name of a change that the template has a sentence for."""
    row = _row(
        Kind.SECURITY, user=user, dedupe=f"security:{user.pk}:{what}:{time.time_ns()}", what=what
    )
    row.to = to
    _put([row])


def welcome(memberships: Iterable[Membership], *, due_at: dict[int, datetime]) -> None:
    """`due_at` by user id: the end of the time in which the approval can be undone."""
    _put(
        _row(
            Kind.WELCOME,
            user=membership.user,
            dedupe=f"welcome:{membership.pk}",
            due_at=due_at.get(membership.user_id or 0),
        )
        for membership in memberships
        if membership.user
    )


def place_ready(decisions: Iterable[Decision]) -> None:
    """Approved before her address was confirmed."""
    _put(_decided(Kind.PLACE_READY, decision) for decision in decisions)


def rejected(decisions: Iterable[Decision]) -> None:
    _put(_decided(Kind.REJECTED, decision) for decision in decisions)


def question(decision: Decision) -> None:
    row = _decided(Kind.QUESTION, decision)
    row.due_at = decision.at
    _put([row])


def _decided(kind: str, decision: Decision) -> Mail:
    return _row(
        kind,
        user=decision.application.user,
        dedupe=f"{kind}:{decision.pk}",
        due_at=decision.final_at,
        decision=decision.pk,
    )


def suspended(user: User, *, event: int, reason: str) -> None:
    _put([_row(Kind.SUSPENDED, user=user, dedupe=f"suspended:{event}", reason=reason)])


def reinstated(user: User, *, event: int) -> None:
    _put([_row(Kind.REINSTATED, user=user, dedupe=f"reinstated:{event}")])


# -- To many ------------------------------------------------------------------------------------
def rotation_done(users: list[User], name: PublicName, due_at: datetime) -> None:
    """Another model has taken the place of the one that `name` stands for."""
    _put(_about_name(Kind.ROTATION_DONE, users, name, due_at))


def name_retires(users: list[User], name: PublicName, due_at: datetime) -> None:
    """Its last day is near."""
    _put(_about_name(Kind.NAME_RETIRES, users, name, due_at))


def _about_name(kind: str, users: list[User], name: PublicName, due_at: datetime) -> Iterator[Mail]:
    """`due_at` is the first one's; the last day tells two rotations apart."""
    last_day = name.retire_at.isoformat() if name.retire_at else ""
    for number, user in enumerate(users):
        yield _row(
            kind,
            user=user,
            dedupe=f"{kind}:{name.pk}:{last_day}:{user.pk}",
            due_at=due_at + number * APART,
            name=name.pk,
            last_day=last_day,
        )


def alerts(users: list[User], rows: list[Alert]) -> None:
    """One mail to each, whatever the number of alerts."""
    ids = sorted(row.pk for row in rows)
    _put(
        _row(Kind.ALERTS, user=user, dedupe=f"alerts:{ids}:{user.pk}", alerts=ids) for user in users
    )


# -- Votes --------------------------------------------------------------------------------------
def proposal_declined(proposal: Proposal) -> None:
    if proposal.proposer and proposal.proposer.is_active:
        row = _row(
            Kind.PROPOSAL_DECLINED,
            user=proposal.proposer,
            dedupe=f"declined:{proposal.pk}",
            proposal=proposal.pk,
        )
        _put([row])


def vote_opened(vote: Vote) -> None:
    """To everybody on the roll."""
    _to_all(Kind.VOTE_OPENED, vote, User.objects.filter(roll_entries__vote=vote))


def vote_result(vote: Vote) -> None:
    """To everybody on the roll, whether or not she voted; whoever has left meanwhile gets none."""
    _to_all(Kind.VOTE_RESULT, vote, User.objects.filter(roll_entries__vote=vote))


def vote_planned(vote: Vote) -> None:
    """To all members of now: what changes, when, and what to do. Once for each plan: one that was
    cancelled may be made again for another day."""
    _to_all(Kind.VOTE_PLANNED, vote, User.objects.all(), about=f"{vote.pk}.{vote.swap_id}")


def _to_all(kind: str, vote: Vote, users: "QuerySet[User]", *, about: str = "") -> None:
    members = users.filter(is_active=True, membership__state=Membership.State.ACTIVE)
    now = timezone.now()
    _put(
        _row(
            kind,
            user=user,
            dedupe=f"{kind}:{about or vote.pk}:{user.pk}",
            due_at=now + number * APART,
            vote=vote.pk,
        )
        for number, user in enumerate(members.order_by("pk"))
    )


def vote_receipt(vote: Vote, user: User) -> None:
    """Its words are not in the row: they are read from her ballot while sending."""
    dedupe = f"receipt:{vote.pk}:{user.pk}:{_window()}"
    _put([_row(Kind.VOTE_RECEIPT, user=user, dedupe=dedupe, vote=vote.pk)])


def forget_receipts(vote: Vote) -> None:
    """Who asked for hers has voted: the rows go with the link. One being sent goes later."""
    rows = Mail.objects.filter(kind=Kind.VOTE_RECEIPT, params__vote=vote.pk)
    rows.exclude(state=Mail.State.SENDING).delete()


def cancel(*, users: Iterable[int], kinds: Iterable[str]) -> int:
    """Takes back what has not gone out yet."""
    return Mail.objects.filter(
        user_id__in=list(users), kind__in=list(kinds), state=Mail.State.DUE
    ).update(state=Mail.State.CANCELLED)
