"""The only writes of the fleet pass to a replica: one state at a time, and only if nobody else
has changed the row meanwhile."""

from typing import Any

from django.utils import timezone

from inference.models import REPLICA_TRANSITIONS, FleetEvent, Replica, Server


class ReplicaChanged(Exception):
    """Somebody changed the row since it was read: leave it to the next round."""


def write(replica: Replica, **values: Any) -> None:
    """One conditional UPDATE on `version`; keeps `replica` in step with its row."""
    ours = Replica.objects.filter(pk=replica.pk, version=replica.version)
    if not ours.update(**values, version=replica.version + 1):
        raise ReplicaChanged
    for name, value in values.items():
        setattr(replica, name, value)
    replica.version += 1


def move(replica: Replica, state: str, *, detail: str = "", **values: Any) -> None:
    """To the next state, with an event. ValueError: no such transition."""
    if state not in REPLICA_TRANSITIONS[replica.state]:
        raise ValueError(f"A replica can't go from {replica.state} to {state}.")
    write(replica, state=state, state_since=timezone.now(), told_at=None, idle_looks=0, **values)
    note(replica, state, detail=detail)


def note(replica: Replica, what: str, *, detail: str = "") -> None:
    FleetEvent.objects.create(
        replica=replica,
        server_id=replica.server_id,
        swap_id=replica.swap_id,
        model_id=replica.model_id,
        what=what,
        detail=detail[:400],
    )


def note_server(server: Server, what: str, *, actor: Any = None, detail: str = "") -> None:
    FleetEvent.objects.create(server=server, what=what, actor=actor, detail=detail[:400])
