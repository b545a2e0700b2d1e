"""What an admin may ask of replicas and servers, and what is refused."""

from collections.abc import Callable

import pytest

from inference.fleet import replicas, servers
from inference.fleet.errors import FleetRefused
from inference.fleet.words import WORDS
from inference.models import (
    CatalogModel,
    FleetEvent,
    Goal,
    PublicName,
    Replica,
    Server,
    Slot,
    Swap,
    SwapReplica,
    SwapState,
)
from members import seats
from members.models import User
from tests.inference.fleet import rooms

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("told")]


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(FleetRefused) as refusal:
        action()
    assert refusal.value.code in WORDS
    return refusal.value.code


def test_a_replica_gets_the_first_free_place(chat: Slot, machine_room: Server, admin: User) -> None:
    first = replicas.add(slot=chat, server=machine_room, gpus=[1], port=8101, actor=admin)
    second = replicas.add(slot=chat, server=machine_room, gpus=[0], port=8102, actor=admin)
    assert (first.number, second.number, first.goal) == (1, 2, Goal.OFF)
    replicas.remove(replica=first, actor=admin)
    third = replicas.add(slot=chat, server=machine_room, gpus=[1], port=8101, actor=admin)
    assert third.number == 1
    assert list(FleetEvent.objects.values_list("what", "detail", "actor")) == [
        ("added", "one:8101", admin.pk),
        ("added", "one:8102", admin.pk),
        ("removed", "one:8101", admin.pk),
        ("added", "one:8101", admin.pk),
    ]


@pytest.mark.parametrize(
    ("gpus", "port", "code"),
    [([0], 8102, "gpu_in_use"), ([7], 8102, "gpu_unknown"), ([1], 8101, "port_in_use")],
)
def test_what_another_replica_has_is_not_given_twice(
    chat: Slot, machine_room: Server, first: Replica, gpus: list[int], port: int, code: str
) -> None:
    assert first.gpus == [0]

    def add() -> None:
        replicas.add(slot=chat, server=machine_room, gpus=gpus, port=port, actor=None)

    assert refused(add) == code
    assert Replica.objects.count() == 1


def test_the_first_one_opens_its_slot_and_its_names(
    machine_room: Server, old: CatalogModel
) -> None:
    empty = rooms.slot("fresh", number=3)
    replica = rooms.replica(empty, machine_room)
    assert refused(lambda: replicas.put_in_service(replica=replica, actor=None)) == "slot_empty"
    replicas.put_in_service(replica=replica, actor=None, model=old)
    empty.refresh_from_db()
    assert (empty.model, Replica.objects.get().wanted) == (old, old)
    assert set(PublicName.objects.values_list("name", flat=True)) == {"fresh", "old-model"}


def test_a_slot_never_gets_a_replica_of_another_model(
    chat: Slot, machine_room: Server, new: CatalogModel
) -> None:
    replica = rooms.replica(chat, machine_room)

    def put() -> None:
        replicas.put_in_service(replica=replica, actor=None, model=new)

    assert refused(put) == "other_model"


def test_a_model_that_needs_more_gpus_than_there_are(chat: Slot, machine_room: Server) -> None:
    Slot.objects.filter(pk=chat.pk).update(model=rooms.catalog_model("big", gpus_needed=2))
    replica = rooms.replica(Slot.objects.get(pk=chat.pk), machine_room)
    assert refused(lambda: replicas.put_in_service(replica=replica, actor=None)) == "gpus_differ"


def test_seats_follow_a_replica_that_is_taken_out(
    machine_room: Server, first: Replica, second: Replica, chat: Slot
) -> None:
    """One that is down, or was never put in service, changes nothing."""
    before = seats.count().total
    Replica.objects.filter(pk=second.pk).update(state="failed")
    rooms.replica(chat, machine_room, 3)
    assert seats.count().total == before
    replicas.take_out(replica=second, actor=None)
    assert seats.count().total == before - machine_room.seats + machine_room.seats // 2
    replicas.put_in_service(replica=second, actor=None)
    assert seats.count().total == before


def test_a_server_has_seats_when_a_model_has_been_put_in_service_on_it(chat: Slot) -> None:
    """Unless it was added by hand: then nothing is known of it but its seats."""
    before = seats.count().total
    server, _token = servers.invite(name="new-one", seats=10, actor=None)
    assert seats.count().total == before
    rooms.say(server, gpus=[rooms.gpu(0)])
    replica = rooms.replica(chat, server, 9)
    assert seats.count().total == before
    replicas.put_in_service(replica=replica, actor=None)
    assert seats.count().total == before + 10
    Server.objects.create(name="by-hand", seats=7)
    assert seats.count().total == before + 17


def test_a_server_goes_out_and_comes_back_with_its_seats(
    machine_room: Server, first: Replica, second: Replica, chat: Slot, new: CatalogModel
) -> None:
    """Back with the model that its slot has by then."""
    before = seats.count().total
    out = {"server": machine_room, "actor": None, "drain_seconds": 30}
    assert refused(lambda: replicas.take_server_out(**out)) == "last_of_slots"
    assert seats.count().total == before
    replicas.take_server_out(**out, may_empty=["nan"])
    assert seats.count().total == before - machine_room.seats
    assert set(Replica.objects.values_list("goal", "drain_seconds", "at_deadline")) == {
        ("off", 30, "cut")
    }
    Slot.objects.filter(pk=chat.pk).update(model=new)
    replicas.put_server_back(server=machine_room, actor=None)
    assert seats.count().total == before
    assert set(Replica.objects.values_list("goal", "goal_model__name")) == {("serve", "new-model")}


def test_what_a_swap_has_begun_only_the_swap_may_end(
    first: Replica, second: Replica, chat: Slot, old: CatalogModel, new: CatalogModel
) -> None:
    swap = Swap.objects.create(slot=chat, from_model=old, to_model=new, state=SwapState.RUNNING)
    SwapReplica.objects.create(swap=swap, replica=first, server=first.server, position=1)
    assert refused(lambda: replicas.take_out(replica=first, actor=None)) == "in_a_swap"
    replicas.take_out(replica=second, actor=None)
    first.refresh_from_db()
    assert first.goal == Goal.SERVE


def test_only_what_is_down_is_tried_again_and_only_what_is_off_is_removed(
    first: Replica, old: CatalogModel
) -> None:
    assert refused(lambda: replicas.retry(replica=first, actor=None)) == "not_failed"
    assert refused(lambda: replicas.remove(replica=first, actor=None)) == "still_running"
    Replica.objects.filter(pk=first.pk).update(state="failed", attempts=4, retry_at=None)
    replicas.retry(replica=first, actor=None)
    again = rooms.look(first, later=1)
    assert (again.state, again.attempts) == ("starting", 1)


def test_what_was_out_before_its_server_stays_out(
    machine_room: Server, first: Replica, second: Replica
) -> None:
    replicas.take_out(replica=first, actor=None)
    replicas.take_server_out(server=machine_room, actor=None, may_empty=["nan"])
    replicas.put_server_back(server=machine_room, actor=None)
    assert list(Replica.objects.values_list("number", "goal")) == [(1, "off"), (2, "serve")]
