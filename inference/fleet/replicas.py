"""What an admin may ask of replicas and whole servers: put in, take out, try again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from inference import wake
from inference.fleet.change import note_server
from inference.fleet.errors import FleetRefused
from inference.fleet.goals import set_goal
from inference.models import (
    AtDeadline,
    CatalogModel,
    FleetEvent,
    Goal,
    Replica,
    ReplicaState,
    Server,
    Slot,
    Swap,
)
from inference.models.fleet import PLACES
from inference.names import life


def add(*, slot: Slot, server: Server, gpus: list[int], port: int, actor: Any) -> Replica:
    """A place for an engine; nothing runs there until it is put in service."""
    _check_gpus(server, gpus)
    taken = set(slot.replicas.values_list("number", flat=True))
    number = next((n for n in range(1, PLACES + 1) if n not in taken), None)
    if number is None:
        raise FleetRefused("pool_full")
    replica = Replica(slot=slot, server=server, gpus=sorted(gpus), port=port, number=number)
    try:
        with transaction.atomic():
            replica.save()
    except IntegrityError:
        raise FleetRefused("port_in_use") from None
    _note(replica, "added", actor)
    return replica


def _check_gpus(server: Server, gpus: list[int]) -> None:
    there = {gpu["index"] for gpu in server.gpus}
    if not set(gpus) <= there:
        raise FleetRefused("gpu_unknown")
    taken = {gpu for other in server.replicas.all() for gpu in other.gpus}
    if taken & set(gpus):
        raise FleetRefused("gpu_in_use")


def put_in_service(*, replica: Replica, actor: Any, model: CatalogModel | None = None) -> None:
    """With its slot's model, or with `model` where the slot has none yet.

    A slot that serves one model never gets a replica of another: that would be a swap.
    """
    with _free(replica) as locked:
        chosen = locked.slot.model or model
        if chosen is None:
            raise FleetRefused("slot_empty")
        if locked.slot.model and model and model != locked.slot.model:
            raise FleetRefused("other_model")
        _check_room(locked, chosen)
        if locked.slot.model is None:
            _open(locked.slot, chosen)
        set_goal(locked, chosen)
        _note(locked, "put_in", actor)
    wake.fleet()


def _open(slot: Slot, model: CatalogModel) -> None:
    """Its first model; members may call both names as soon as the gateway has them."""
    slot.model, slot.model_since = model, timezone.now()
    slot.save(update_fields=["model", "model_since"])
    try:
        life.claim_slot_name(slot)
    except life.NameTaken:
        raise FleetRefused("name_of_other_slot") from None
    wake.names()


def _check_room(replica: Replica, model: CatalogModel) -> None:
    if model.kind != replica.slot.kind:
        raise FleetRefused("other_kind")
    if len(replica.gpus) != model.gpus_needed:
        raise FleetRefused("gpus_differ")


def take_out(
    *,
    replica: Replica,
    actor: Any,
    drain_seconds: int = 900,
    at_deadline: str = AtDeadline.CUT,
) -> None:
    """Drains it, stops its engine and leaves it off until it is put in again."""
    with _free(replica) as locked:
        set_goal(locked, None, drain_seconds=drain_seconds, at_deadline=at_deadline)
        _note(locked, "taken_out", actor)
    wake.fleet()


def retry(*, replica: Replica, actor: Any) -> None:
    """Starts a failed one again, at once and with a fresh count of attempts."""
    with _free(replica) as locked:
        if locked.state != ReplicaState.FAILED or locked.goal_model is None:
            raise FleetRefused("not_failed")
        set_goal(locked, locked.goal_model)
        _note(locked, "retried", actor)
    wake.fleet()


def remove(*, replica: Replica, actor: Any) -> None:
    """Its history stays with the server's and the swaps' events."""
    with _free(replica) as locked:
        if locked.state not in (ReplicaState.OFF, ReplicaState.FAILED) or locked.goal != Goal.OFF:
            raise FleetRefused("still_running")
        _note(locked, "removed", actor)
        locked.delete()


def take_server_out(
    *,
    server: Server,
    actor: Any,
    drain_seconds: int = 900,
    at_deadline: str = AtDeadline.CUT,
) -> None:
    """Every replica on it, and its seats; a GPU may be needed for something else for a day."""
    for replica in server.replicas.filter(goal=Goal.SERVE):
        take_out(replica=replica, actor=actor, drain_seconds=drain_seconds, at_deadline=at_deadline)
        Replica.objects.filter(pk=replica.pk).update(out_with_server=True)
    Server.objects.filter(pk=server.pk).update(active=False)
    note_server(server, "server_out", actor=actor)


def put_server_back(*, server: Server, actor: Any) -> None:
    """Its seats, and the replicas that went out with it, each with its slot's model of today. What
    somebody had taken out before stays out."""
    Server.objects.filter(pk=server.pk).update(active=True)
    note_server(server, "server_back", actor=actor)
    for replica in server.replicas.filter(out_with_server=True).exclude(slot__model=None):
        put_in_service(replica=replica, actor=actor)


@contextmanager
def _free(replica: Replica) -> Iterator[Replica]:
    """The row, locked, and not driven by a swap: what a swap has begun, only it may end."""
    with transaction.atomic():
        locked = Replica.objects.select_for_update().get(pk=replica.pk)
        if Swap.objects.active().filter(parts__replica=locked).exists():
            raise FleetRefused("in_a_swap")
        yield locked


def _note(replica: Replica, what: str, actor: Any) -> None:
    FleetEvent.objects.create(
        replica=replica, server_id=replica.server_id, what=what, actor=actor, detail=str(replica)
    )
