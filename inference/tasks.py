"""Celery tasks of this app: each calls one function, which writes the outcome into its rows.

Tasks named gateway_* run on the gateway queue only, whose worker alone holds the master key; those
named fleet_* on the fleet queue, whose worker alone reaches the pool and the engines.
"""

from typing import Any

from celery import shared_task
from django.core.cache import cache

from inference import wake
from nan.celery import enqueue


@shared_task
def gateway_advance_keys() -> None:
    """Takes every step that is due at the gateway: what members asked for, retries, ends of
    overlaps, what a lost message or a dead worker left."""
    from inference.provisioning import advance_due

    cache.delete(wake.GATEWAY_AWAKE)
    advance_due(more=lambda: enqueue(wake.ADVANCE_KEYS))


@shared_task
def gateway_reconcile_keys() -> None:
    from inference.reconcile import reconcile

    reconcile()


@shared_task
def fleet_pass() -> None:
    """Every five seconds by the beat, and again at once while something moves."""
    from inference.fleet.passes import run_pass

    if run_pass():
        wake.fleet()


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
    from inference.heartbeats import beat
    from inference.names import life, publish

    life.retire_due()
    publish.publish()
    beat("gateway")


@shared_task
def gateway_pull_usage() -> None:
    from inference.usage.pull import pull

    pull()


@shared_task
def fleet_sample() -> None:
    """Twice a minute: how engines and slots do; incidents begin and end by it."""
    from inference.status.sampling import take

    take()


@shared_task
def thin_samples() -> None:
    from inference.status.thinning import thin

    thin()


@shared_task
def make_probes() -> None:
    """By the beat, and again at once while a run has calls left."""
    from inference.probes import runs

    if runs.advance():
        wake.probes()
