"""Asking for work now that a sweep on the beat would find within seconds.

By the names of the tasks: features that want something done don't import `inference.tasks`, which
imports the features that do it.
"""

from django.core.cache import cache

from nan.celery import enqueue

GATEWAY_AWAKE = "gateway-worker-awake"
ADVANCE_KEYS = "inference.tasks.gateway_advance_keys"
PUBLISH_NAMES = "inference.tasks.gateway_publish_names"
MOVE_FLEET = "inference.tasks.fleet_pass"
CHECK_REPLICA = "inference.tasks.fleet_check_replica"
WATCH_REPLICA = "inference.tasks.fleet_watch_replica"
MAKE_PROBES = "inference.tasks.make_probes"
STALE = 20
"""Seconds after which a look at one engine is no longer worth taking."""


def gateway_worker() -> None:
    """Call after the commit. Many calls at once publish one message.

    While the mark is there, a message is on its way whose task will remove the mark before it
    looks for due rows, and so will see this commit too. If the message is lost, the sweep on the
    beat finds the rows.
    """
    if cache.add(GATEWAY_AWAKE, 1, 3):
        enqueue(ADVANCE_KEYS)


def names() -> None:
    """A public name has come or gone."""
    enqueue(PUBLISH_NAMES)


def fleet() -> None:
    """A goal or a swap has changed, or the last pass left something moving."""
    enqueue(MOVE_FLEET)


def check(replica_id: int, instance: str) -> None:
    enqueue(CHECK_REPLICA, replica_id, instance, expires=STALE)


def watch(replica_id: int, instance: str) -> None:
    enqueue(WATCH_REPLICA, replica_id, instance, expires=STALE)


def probes() -> None:
    """A run of probes is asked for, or has calls left."""
    enqueue(MAKE_PROBES)
