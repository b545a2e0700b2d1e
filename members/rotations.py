"""Writing to members about the models' names: after a rotation, and before a name is retired.

`inference` marks in its rows what members are to be told. A run that dies is simply begun again:
the outbox keeps one mail for each name, last day and member.
"""

from collections.abc import Callable, Iterator
from datetime import datetime

import structlog
from django.utils import timezone

from inference.models import PublicName
from members import mails
from members.models import Membership, User

log = structlog.get_logger(__name__)

BATCH = 500

Write = Callable[[list[User], PublicName, datetime], None]


def tell() -> None:
    now = timezone.now()
    for name in PublicName.objects.to_be_told().select_related("slot__model", "model"):
        if _to_all(name, mails.rotation_done, now):
            _mark(name, told_at=now)
    for name in PublicName.objects.to_be_warned(now).select_related("slot__model", "model"):
        if _to_all(name, mails.name_retires, now):
            _mark(name, warned_at=now)


def _to_all(name: PublicName, write: Write, now: datetime) -> bool:
    """False, and nothing written, for a row that has nothing to tell."""
    if name.model is None or name.slot.model is None:
        return False
    written = 0
    for users in _members():
        write(users, name, now + written * mails.APART)
        written += len(users)
    log.info("members_told", what=write.__name__, name=name.name, members=written)
    return True


def _members() -> Iterator[list[User]]:
    """Active ones, a batch at a time: each batch's mails are a transaction of their own."""
    last = 0
    while True:
        batch = Membership.objects.in_good_standing().filter(pk__gt=last)
        memberships = list(batch.select_related("user").order_by("pk")[:BATCH])
        if not memberships:
            return
        last = memberships[-1].pk
        yield [membership.user for membership in memberships if membership.user]


def _mark(name: PublicName, **values: datetime) -> None:
    """Unless the name has got another last day, or none, while we wrote."""
    PublicName.objects.filter(pk=name.pk, retire_at=name.retire_at).update(**values)
