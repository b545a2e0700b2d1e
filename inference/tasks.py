"""Celery tasks of this app: each calls one function, which writes the outcome into its rows.

Tasks named gateway_* run on the gateway queue only, whose worker alone holds the master key.
"""

from celery import shared_task
from django.core.cache import cache

from nan.celery import enqueue

AWAKE = "gateway-worker-awake"


def wake_gateway_worker() -> None:
    """Call after the commit. Many calls at once publish one message.

    While the mark is there, a message is on its way whose task will remove the mark before it
    looks for due rows, and so will see this commit too. If the message is lost, the sweep on the
    beat finds the rows.
    """
    if cache.add(AWAKE, 1, 3):
        enqueue(gateway_advance_keys)


@shared_task
def gateway_advance_keys() -> None:
    """Takes every step that is due at the gateway: what members asked for, retries, ends of
    overlaps, what a lost message or a dead worker left."""
    from inference.provisioning import advance_due

    cache.delete(AWAKE)
    advance_due(more=lambda: enqueue(gateway_advance_keys))


@shared_task
def gateway_reconcile_keys() -> None:
    from inference.reconcile import reconcile

    reconcile()
