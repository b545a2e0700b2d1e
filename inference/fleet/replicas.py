"""What an admin may ask of replicas and whole servers: put in, take out, try again.

Each answers whether it changed anything: of two clicks, or two admins, one finds it done. The slot
is locked first, then the replica, so what is said about the others holds until it is written.
"""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from inference import wake
from inference.fleet import alerts
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
    """A place for an engine; nothing runs there until it is put in service. Refused where its
    slot's model could not: a slot gets one with other needs by a swap, of replicas that serve."""
    with transaction.atomic():
        locked = Server.objects.select_for_update().filter(pk=server.pk).first()
        if locked is None:
            raise FleetRefused("server_gone")
        _check_gpus(locked, gpus)
        place = Slot.objects.select_for_update(no_key=True).get(pk=slot.pk)
        replica = Replica(slot=place, server=locked, gpus=sorted(gpus), port=port)
        if place.model:
            _check_room(replica, place.model)
        replica.number = _free_place(place)
        try:
            with transaction.atomic():
                replica.save()
        except IntegrityError:
            raise FleetRefused("port_in_use") from None
        _note(replica, "added", actor)
    return replica


def _free_place(slot: Slot) -> int:
    taken = set(slot.replicas.values_list("number", flat=True))
    number = next((n for n in range(1, PLACES + 1) if n not in taken), None)
    if number is None:
        raise FleetRefused("pool_full")
    return number


def _check_gpus(server: Server, gpus: list[int]) -> None:
    there = {gpu["index"] for gpu in server.gpus}
    if not set(gpus) <= there:
        raise FleetRefused("gpu_unknown")
    taken = {gpu for other in server.replicas.all() for gpu in other.gpus}
    if taken & set(gpus):
        raise FleetRefused("gpu_in_use")


def put_in_service(*, replica: Replica, actor: Any, model: CatalogModel | None = None) -> bool:
    """With its slot's model, or with `model` where the slot has none yet.

    A slot that serves one model never gets a replica of another: that would be a swap. Nor does
    one join while a swap changes the others: it would be left on the old model.
    """
    with _free(replica) as locked:
        if Swap.objects.active().filter(slot=locked.slot).exists():
            raise FleetRefused("slot_in_a_swap")
        chosen = locked.slot.model or model
        if chosen is None:
            raise FleetRefused("slot_empty")
        if locked.slot.model and model and model != locked.slot.model:
            raise FleetRefused("other_model")
        if locked.wanted == chosen:
            return False
        _check_room(locked, chosen)
        if locked.slot.model is None:
            _open(locked.slot, chosen)
        set_goal(locked, chosen)
        _note(locked, "put_in", actor)
    wake.fleet()
    return True


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
    needed, there = model.gpus_needed, len(replica.gpus)
    if needed != there:
        raise FleetRefused("gpus_differ", model=model, needed=needed, there=there)


def others_serving(replica: Replica) -> int:
    """How many of the slot go on serving without it."""
    return replica.slot.replicas.staying().exclude(pk=replica.pk).count()


def take_out(
    *,
    replica: Replica,
    actor: Any,
    drain_seconds: int = 900,
    at_deadline: str = AtDeadline.CUT,
    last: bool = False,
) -> bool:
    """Drains it, stops its engine and leaves it off until it is put in again. `last`: also if no
    other of its slot goes on serving."""
    with _free(replica) as locked:
        if locked.goal == Goal.OFF:
            return False
        if not last and not others_serving(locked):
            raise FleetRefused("last_replica")
        set_goal(locked, None, drain_seconds=drain_seconds, at_deadline=at_deadline)
        _note(locked, "taken_out", actor)
    wake.fleet()
    return True


def retry(*, replica: Replica, actor: Any) -> bool:
    """Starts a failed one again, at once and with a fresh count of attempts."""
    with _free(replica) as locked:
        if locked.state != ReplicaState.FAILED or locked.goal_model is None:
            raise FleetRefused("not_failed")
        if not locked.error_code and locked.retry_at:
            return False
        set_goal(locked, locked.goal_model)
        _note(locked, "retried", actor)
    wake.fleet()
    return True


def remove(*, replica: Replica, actor: Any) -> None:
    """Its history stays with the server's and the swaps' events. An engine on a server that is gone
    may still run there; it is in no pool, and nobody asks for it again."""
    with _free(replica) as locked:
        if not locked.removable:
            raise FleetRefused("still_running")
        _note(locked, "removed", actor)
        alerts.part_with(replica=locked)
        locked.delete()


def left_empty(server: Server) -> list[Slot]:
    """Slots that nothing would serve without this server's replicas."""
    here = server.replicas.filter(goal=Goal.SERVE).values_list("slot", flat=True)
    elsewhere = Replica.objects.staying().exclude(server=server)
    return list(
        Slot.objects.filter(pk__in=here).exclude(pk__in=elsewhere.values("slot")).order_by("number")
    )


def take_server_out(
    *,
    server: Server,
    actor: Any,
    drain_seconds: int = 900,
    at_deadline: str = AtDeadline.CUT,
    may_empty: Container[str] = (),
) -> bool:
    """Every replica on it, and its seats; a GPU may be needed for something else for a day.

    All or nothing. `may_empty`: names of the slots that may be left with nothing that serves.
    """
    chosen: dict[str, Any] = {"drain_seconds": drain_seconds, "at_deadline": at_deadline}
    with transaction.atomic():
        slots = Slot.objects.filter(replicas__server=server).values("pk")
        list(Slot.objects.filter(pk__in=slots).order_by("pk").select_for_update(no_key=True))
        if any(slot.name not in may_empty for slot in left_empty(server)):
            raise FleetRefused("last_of_slots")
        serving = list(server.replicas.filter(goal=Goal.SERVE))
        for replica in serving:
            take_out(replica=replica, actor=actor, last=True, **chosen)
            Replica.objects.filter(pk=replica.pk).update(out_with_server=True)
        active = Server.objects.filter(pk=server.pk, active=True)
        changed = bool(active.update(active=False) or serving)
        if changed:
            note_server(server, "server_out", actor=actor)
    return changed


def put_server_back(*, server: Server, actor: Any) -> bool:
    """Its seats, and the replicas that went out with it, each with its slot's model of today. What
    somebody had taken out before stays out. All or nothing."""
    with transaction.atomic():
        if not Server.objects.filter(pk=server.pk, active=False).update(active=True):
            return False
        note_server(server, "server_back", actor=actor)
        out = server.replicas.filter(out_with_server=True).exclude(slot__model=None)
        for replica in out.order_by("slot"):
            put_in_service(replica=replica, actor=actor)
    return True


@contextmanager
def _free(replica: Replica) -> Iterator[Replica]:
    """The row, locked, and not driven by a swap: what a swap has begun, only it may end."""
    with transaction.atomic():
        slot = Slot.objects.select_for_update(no_key=True).get(pk=replica.slot_id)
        locked = Replica.objects.select_for_update().filter(pk=replica.pk).first()
        if locked is None:
            raise FleetRefused("replica_gone")
        locked.slot = slot
        if Swap.objects.active().filter(parts__replica=locked).exists():
            raise FleetRefused("in_a_swap")
        yield locked


def _note(replica: Replica, what: str, actor: Any) -> None:
    FleetEvent.objects.create(
        replica=replica, server_id=replica.server_id, what=what, actor=actor, detail=str(replica)
    )
