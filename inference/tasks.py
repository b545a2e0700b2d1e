"""Celery tasks of this app: each takes an id, calls one function, writes the outcome.

Tasks named gateway_* run on the gateway queue only, whose worker alone holds the master key.
"""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from nan.celery import enqueue

# A published holder is not published again for this long; a lost message waits no longer.
REPUBLISH = timedelta(seconds=20)
BATCH = 500


@shared_task
def gateway_advance_key(owner_ref: str) -> None:
    from inference.provisioning import advance

    advance(UUID(owner_ref))


@shared_task
def gateway_advance_keys() -> None:
    """Wakes whatever is due: retries, ends of overlaps, lost messages, dead workers' leases."""
    from inference.models import KeyHolder

    now = timezone.now()
    due = list(KeyHolder.objects.due(now).values_list("pk", flat=True)[:BATCH])
    KeyHolder.objects.due(now).filter(pk__in=due).update(due_at=now + REPUBLISH)
    for owner_ref in due:
        enqueue(gateway_advance_key, str(owner_ref))


@shared_task
def gateway_reconcile_keys() -> None:
    from inference.reconcile import reconcile

    reconcile()
