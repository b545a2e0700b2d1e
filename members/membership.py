"""Being in: begins when both approved and confirmed, may be suspended, ends when she leaves."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import structlog
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from inference import keys
from inference.models import KeyHolder
from members import mails, seats
from members.models import Application, Decision, Mail, Membership, MembershipEvent, User

log = structlog.get_logger(__name__)

Event = MembershipEvent.Action
ERASE_BATCH = 50


class NotPossible(Exception):
    """The membership is not in a state for this; the message says in which one it is."""


def in_community(user: Any) -> bool:
    """Members, and the admins who look after them: who reads what is said among members."""
    return isinstance(user, User) and (user.is_member or (user.is_staff and user.is_active))


# -- Beginning --------------------------------------------------------------------------------
@transaction.atomic
def activate(*, users: Iterable[int]) -> list[Membership]:
    """Makes members of those of `users` who are approved and confirmed; repeating it adds nothing.

    Called both after an approval and after a confirmation. Locking the person's applications in
    both makes the later of two simultaneous calls see what the earlier one committed.
    """
    locked = Application.objects.filter(user_id__in=list(users)).order_by("pk").select_for_update()
    approved = [row.user_id for row in locked if row.state == Application.State.APPROVED]
    return begin(approved=approved) if approved else []


def begin(*, approved: Iterable[int]) -> list[Membership]:
    """For users whose approved applications the caller has locked, in a transaction."""
    verified = EmailAddress.objects.filter(user_id=OuterRef("pk"), verified=True)
    ready = User.objects.filter(Exists(verified), is_active=True, membership=None)
    people = list(ready.filter(pk__in=approved).order_by("pk"))
    if not people:
        return []
    users = [user.pk for user in people]
    memberships = Membership.objects.bulk_create([Membership(user=user) for user in people])
    _open_keys(people)
    _note(Event.ACTIVATED, users=users)
    mails.cancel(users=users, kinds=[Mail.Kind.PLACE_READY])
    mails.welcome(memberships, due_at=_final_at(users))
    transaction.on_commit(seats.changed)
    return memberships


def _final_at(users: Iterable[int]) -> dict[int, datetime]:
    """When the approvals of these people can't be undone any more."""
    decisions = Decision.objects.filter(
        application__user_id__in=users,
        application__state=Application.State.APPROVED,
        action=Decision.Action.APPROVE,
        undone_at=None,
    )
    return dict(decisions.order_by("pk").values_list("application__user_id", "final_at"))


def _open_keys(people: Iterable[User]) -> None:
    """Undoes the hold of those whose earlier approval was taken back."""
    taken_back = MembershipEvent.objects.filter(user__in=people, action=Event.TAKEN_BACK)
    again = set(taken_back.values_list("user_id", flat=True))
    for user in people:
        if user.pk in again:
            keys.release(user=user, actor=None)


def activate_confirmed() -> list[Membership]:
    """The sweep: approved people whose confirmation came on a way that did not tell us."""
    verified = EmailAddress.objects.filter(user_id=OuterRef("user_id"), verified=True)
    missed = Application.objects.filter(
        Exists(verified),
        state=Application.State.APPROVED,
        user__membership=None,
        user__is_active=True,
    )
    users = list(missed.values_list("user_id", flat=True)[:200])
    return activate(users=users) if users else []


def lock_suspended(*, users: Iterable[int]) -> list[str]:
    """Names of those who are suspended; nobody else's state changes until the transaction ends."""
    rows = Membership.objects.filter(user_id__in=list(users)).order_by("pk")
    locked = rows.select_related("user").select_for_update(of=("self",))
    return [_person(row).call_name for row in locked if row.state == Membership.State.SUSPENDED]


def let_back_in(*, users: Iterable[int]) -> None:
    """An approval also ends a suspension whose membership is gone; in the approval's transaction.

    Who was switched off by hand in the admin, without a suspension, stays so.
    """
    suspended = MembershipEvent.objects.filter(user=OuterRef("pk"), action=Event.SUSPENDED)
    stranded = User.objects.filter(Exists(suspended), pk__in=list(users), is_active=False)
    stranded.filter(membership=None).update(is_active=True)


def take_back(*, users: Iterable[int], actor: User | None, reason: str) -> None:
    """Undoes an approval within its time: no membership, no key, no welcome. In a transaction."""
    users = list(users)
    mails.cancel(users=users, kinds=[Mail.Kind.WELCOME, Mail.Kind.PLACE_READY])
    memberships = Membership.objects.filter(user_id__in=users).select_related("user")
    for membership in memberships:
        close_keys(user=_person(membership), actor=actor, reason=reason)
    _note(Event.TAKEN_BACK, users=[m.user_id for m in memberships], actor=actor)
    memberships.delete()
    transaction.on_commit(seats.changed)


def close_keys(*, user: User, actor: User | None, reason: str) -> None:
    """Her keys go, and a request for one that is under way at this moment finds the door closed."""
    keys.hold(user=user, actor=actor, reason=reason)
    keys.remove_all(user=user, actor=actor, reason=reason)


# -- Suspension -------------------------------------------------------------------------------
@transaction.atomic
def suspend(*, membership: Membership, actor: User | None, reason: str) -> Membership:
    """Ends her sessions and holds her key; the gateway follows within its minute."""
    if not reason.strip():
        raise NotPossible(_("A suspension needs a reason."))
    _move(membership, Membership.State.ACTIVE, Membership.State.SUSPENDED)
    user = _person(membership)
    shut_out(user)
    keys.hold(user=user, actor=actor, reason=reason)
    event = _note(Event.SUSPENDED, users=[user.pk], actor=actor, reason=reason)[0]
    mails.suspended(user, event=event.pk, reason=reason)
    return membership


@transaction.atomic
def reinstate(*, membership: Membership, actor: User | None) -> Membership:
    _move(membership, Membership.State.SUSPENDED, Membership.State.ACTIVE)
    user = _person(membership)
    User.objects.filter(pk=user.pk).update(is_active=True)
    user.is_active = True
    keys.release(user=user, actor=actor)
    event = _note(Event.REINSTATED, users=[user.pk], actor=actor)[0]
    mails.reinstated(user, event=event.pk)
    return membership


def shut_out(user: User) -> None:
    """No way in: every session ends now, and a new sign-in is refused."""
    User.objects.filter(pk=user.pk).update(is_active=False, session_epoch=F("session_epoch") + 1)
    user.is_active = False
    sessions = UserSession.objects.filter(user=user)
    Session.objects.filter(session_key__in=sessions.values("session_key")).delete()
    sessions.delete()


@transaction.atomic
def set_limits(
    *,
    membership: Membership,
    rpm: int | None,
    parallel: int | None,
    actor: User | None,
    reason: str,
) -> Membership:
    if not reason.strip():
        raise NotPossible(_("Changed limits need a reason."))
    user = _person(membership)
    keys.set_limits(user=user, rpm=rpm, parallel=parallel, actor=actor, reason=reason)
    _note(
        Event.LIMITS,
        users=[user.pk],
        actor=actor,
        reason=f"{rpm or '·'}/{parallel or '·'}: {reason}",
    )
    return membership


# -- Leaving ----------------------------------------------------------------------------------
@transaction.atomic
def leave(*, user: User) -> Membership | None:
    """Erases what we hold about her and starts the removal of her keys.

    Returns the membership, which keeps a nameless person until the gateway has confirmed; None for
    someone who is no member: what is left of her keys, if anything, the sweep sees to.
    """
    membership = Membership.objects.filter(user=user).select_for_update().first()
    shut_out(user)
    if membership is None and not KeyHolder.objects.filter(pk=user.public_id).exists():
        user.delete()
        return None
    close_keys(user=user, actor=None, reason="left")
    _forget_person(user)
    if membership is None:
        return None
    membership.state = Membership.State.LEFT
    membership.left_at = timezone.now()
    membership.save(update_fields=["state", "left_at"])
    _note(Event.LEFT, users=[user.pk])
    transaction.on_commit(seats.changed)
    return membership


def _forget_person(user: User) -> None:
    """Everything personal goes now; a row without a name stays as the owner of keys in removal."""
    user.applications.all().delete()
    user.mails.all().delete()
    _forget_voting(user)
    for hers in (SocialAccount, Authenticator, EmailAddress):
        hers.objects.filter(user=user).delete()
    user.membership_events.update(reason="")
    user.email = f"left-{user.public_id}@invalid"
    user.name, user.language = "", ""
    user.is_staff = user.is_superuser = False
    user.last_login = None
    user.set_unusable_password()
    user.save()


def _forget_voting(user: User) -> None:
    """A ballot of hers in an open vote counts on without her: her place on the roll is nameless."""
    user.seconds.all().delete()
    user.recall_signatures.all().delete()
    user.proposals.update(proposer=None)
    user.roll_entries.update(user=None)


def erase_left() -> int:
    """The sweep: deletes the nameless people whose keys the gateway has confirmed as gone."""
    gone = [user for user in _left()[:ERASE_BATCH] if not keys.pending_at_gateway(user)]
    for user in gone:
        user.delete()
        log.info("person_erased")
    return len(gone)


def _left() -> QuerySet[User]:
    return User.objects.filter(
        is_active=False, email__startswith="left-", email__endswith="@invalid"
    )


def is_pending(membership: Membership) -> bool:
    """Has the gateway yet to confirm what was done to this member?"""
    return bool(membership.user and keys.pending_at_gateway(membership.user))


# -- Small parts ------------------------------------------------------------------------------
def _move(membership: Membership, origin: str, target: str) -> None:
    moved = Membership.objects.filter(pk=membership.pk, state=origin).update(state=target)
    try:
        membership.refresh_from_db()
    except Membership.DoesNotExist:
        raise NotPossible(_("This approval was undone.")) from None
    if not moved:
        raise NotPossible(
            _("This membership is %(state)s.") % {"state": membership.get_state_display()}
        )


def _person(membership: Membership) -> User:
    if membership.user is None:
        raise NotPossible(_("This person has left."))
    return membership.user


def _note(
    action: str, *, users: Iterable[int | None], actor: User | None = None, reason: str = ""
) -> list[MembershipEvent]:
    return MembershipEvent.objects.bulk_create(
        [
            MembershipEvent(action=action, user_id=user, actor=actor, reason=reason[:500])
            for user in users
        ]
    )
