"""The right to move replicas and swaps: one pass at a time, whatever is delivered twice."""

from datetime import timedelta
from uuid import UUID, uuid4

from django.utils import timezone

from inference.models import FleetLease

LEASE = timedelta(seconds=12)
"""Longer than one round of a pass can take (two timeouts of 2 s and the pool's); a worker that was
killed in the middle holds everything up for no longer than this."""


def take() -> UUID | None:
    """The holder's mark, or None while another pass is at it."""
    FleetLease.objects.get_or_create(pk=1)
    mark, now = uuid4(), timezone.now()
    free = FleetLease.objects.filter(pk=1, until__lte=now)
    return mark if free.update(holder=mark, until=now + LEASE) else None


def renew(mark: UUID) -> bool:
    """False: it ran out and somebody else has it. Stop at once."""
    ours = FleetLease.objects.filter(pk=1, holder=mark)
    return bool(ours.update(until=timezone.now() + LEASE))


def give_back(mark: UUID) -> None:
    FleetLease.objects.filter(pk=1, holder=mark).update(until=timezone.now())
