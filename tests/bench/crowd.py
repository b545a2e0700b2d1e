"""Many people in the database, in the mixture that the community has: three wait for each member.

Filled in bulk. The gateway knows nothing of their keys, so only a stack without one may hold them.
"""

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.db import connection
from django.utils import timezone

from inference.models import Key, KeyEvent, KeyHolder, KeyState
from members.models import Application, Decision, Mail, Membership, MembershipEvent, User

State = Application.State
ADMIN = "admin@crowd.invalid"
CHUNK = 2000
BUILDS = "An agent that reads the logs of a bakery's ovens and tells when one needs care. " * 3
# Of twenty people; with hundred of them, the waitlist's first page is full.
MIXTURE = (
    *(State.PENDING,) * 12,
    State.NEEDS_INFORMATION,
    *(State.APPROVED,) * 5,
    State.REJECTED,
    State.WITHDRAWN,
)


def admin() -> User:
    user = User.objects.filter(email=ADMIN).first()
    if user is None:
        user = User.objects.create_superuser(ADMIN, None, language="en", name="Alma")
        TOTP.activate(user, generate_totp_secret())
    return user


def fill(count: int) -> User:
    """Adds people up to `count`; returns a member with an active key."""
    decided_by = admin()
    there = User.objects.filter(is_staff=False).count()
    for first in range(there, count, CHUNK):
        _add(range(first, min(first + CHUNK, count)), decided_by)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    key = Key.objects.filter(state=KeyState.ACTIVE).select_related("holder__member").first()
    assert key
    return key.holder.member


def _add(numbers: Sequence[int], decided_by: User) -> None:
    began = timezone.now() - timedelta(days=365)
    people = User.objects.bulk_create(_person(number, began) for number in numbers)
    EmailAddress.objects.bulk_create(
        EmailAddress(user=user, email=user.email, verified=number % 10 != 9, primary=True)
        for number, user in zip(numbers, people, strict=True)
    )
    applications = [
        application
        for number, user in zip(numbers, people, strict=True)
        for application in _applications(number, user)
    ]
    Application.objects.bulk_create(applications)
    Decision.objects.bulk_create(_decisions(applications, decided_by))
    _add_members([a.user for a in applications if a.state == State.APPROVED], decided_by)
    Mail.objects.bulk_create(_mail(user) for user in people)


def _person(number: int, began: datetime) -> User:
    joined = began + timedelta(minutes=5 * number)
    return User(
        email=f"p{number}@crowd.invalid", name=f"Person {number}", language="en", date_joined=joined
    )


def _applications(number: int, user: User) -> Iterator[Application]:
    """One in ten was rejected before and applies again: her history shows on the waitlist."""
    for state in (*((State.REJECTED,) if number % 10 == 3 else ()), MIXTURE[number % len(MIXTURE)]):
        yield Application(
            user=user,
            state=state,
            builds=BUILDS,
            clients=["opencode", "claude-code"],
            tokens_per_day="to-10m",
            referred_by="Ada",
            applied_at=user.date_joined,
        )


def _decisions(applications: Sequence[Application], decided_by: User) -> Iterator[Decision]:
    actions = {State.APPROVED: Decision.Action.APPROVE, State.REJECTED: Decision.Action.REJECT}
    for application in applications:
        if application.state in actions:
            yield Decision(
                application=application,
                actor=decided_by,
                action=actions[State(application.state)],
                from_state=State.PENDING,
                to_state=application.state,
                reason_code="capacity" if application.state == State.REJECTED else "",
                at=application.applied_at + timedelta(hours=5),
                final_at=application.applied_at + timedelta(hours=6),
            )


def _add_members(people: Sequence[User], decided_by: User) -> None:
    Membership.objects.bulk_create(
        Membership(user=user, state="suspended" if number % 20 == 19 else "active")
        for number, user in enumerate(people)
    )
    MembershipEvent.objects.bulk_create(
        MembershipEvent(user=user, actor=decided_by, action="activated") for user in people
    )
    holders = KeyHolder.objects.bulk_create(
        KeyHolder(owner_ref=user.public_id, member=user, held=number % 20 == 19)
        for number, user in enumerate(people)
    )
    keys = Key.objects.bulk_create(key for holder in holders for key in _keys(holder))
    KeyEvent.objects.bulk_create(
        KeyEvent(holder=key.holder, key=key, actor=key.holder.member, what="requested")
        for key in keys
    )


def _keys(holder: KeyHolder) -> Iterator[Key]:
    """The one she has, and two that she replaced."""
    live = KeyState.BLOCKED if holder.held else KeyState.ACTIVE
    for state in (KeyState.DELETED, KeyState.DELETED, live):
        now, gone = timezone.now(), state == KeyState.DELETED
        yield Key(
            holder=holder,
            state=state,
            rpm=100,
            parallel=5,
            token=hashlib.sha256(uuid.uuid4().bytes).hexdigest(),
            hint="abcd",
            public_key=bytes(32),
            active_at=now,
            revealed_at=now,
            remove_at=now if gone else None,
            deleted_at=now if gone else None,
        )


def _mail(user: User) -> Mail:
    return Mail(
        user=user,
        to=user.email,
        kind=Mail.Kind.CONFIRM,
        language="en",
        dedupe=f"crowd:{user.pk}",
        state=Mail.State.SENT,
        sent_at=user.date_joined,
        due_at=user.date_joined,
        created_at=user.date_joined,
    )
