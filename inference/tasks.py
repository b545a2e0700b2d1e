"""Celery tasks of this app: each calls one function, which writes the outcome into its rows.

Tasks named gateway_* run on the gateway queue only, whose worker alone holds the master key; those
named fleet_* on the fleet queue, whose worker alone reaches the pool and the engines.
"""

from typing import Any

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


@shared_task
def fleet_pass() -> None:
    """Every five seconds by the beat, and again at once while something moves."""
    from inference.fleet.passes import run_pass
    from inference.fleet.wake import ROUNDS, send

    if run_pass():
        send(ROUNDS)


@shared_task
def fleet_ask_servers() -> None:
    from inference.fleet.reports import ask_all

    ask_all()


@shared_task
def fleet_take_report(server: str, report: dict[str, Any]) -> None:
    """Published by the servers' own workers, after everything they do."""
    from inference.fleet.reports import take

    take(server, report)


@shared_task
def fleet_check_replica(replica: int, instance: str) -> None:
    from inference.fleet.checking import run

    run(replica, instance)


@shared_task
def fleet_watch_replica(replica: int, instance: str) -> None:
    from inference.fleet.watching import run

    run(replica, instance)


@shared_task
def gateway_publish_names() -> None:
    """By the beat, and at once when a swap has ended."""
    from inference.names import life, publish

    life.retire_due()
    publish.publish()
