"""What an engine says of its cache is kept when it serves, and outlives it."""

from collections.abc import Iterator
from typing import Any

import pytest

from inference.fleet import watching
from inference.models import CatalogModel, Goal, Measurement, Replica, Server, measured_with
from inference.swaps.capacity import capacity
from tests.inference.fleet import rooms
from tests.inference.fleet.conftest import Told
from tests.inference.simulator.engines import RunningEngine, running

pytestmark = pytest.mark.django_db


@pytest.fixture
def engine() -> Iterator[RunningEngine]:
    with running(SIM_KV_CACHE_TOKENS="327680") as found:
        yield found


def watched(replica: Replica, engine: RunningEngine) -> Replica:
    Replica.objects.filter(pk=replica.pk).update(port=engine.port)
    watching.run(replica.pk, replica.instance)
    return Replica.objects.whole().get(pk=replica.pk)


def known(model: CatalogModel, server: Server, gpu: int = 0) -> Any:
    return capacity(model, server, [gpu], known=Measurement.objects.of([model])).measured


def test_it_is_kept_once_the_engine_serves(
    first: Replica, old: CatalogModel, machine_room: Server, engine: RunningEngine
) -> None:
    Server.objects.update(engine="vllm 0.33.0")
    assert known(old, machine_room) is None
    assert watched(first, engine).watch["measured"] is True
    kept = known(old, machine_room, gpu=1)  # the other GPU is of the same kind
    assert (kept.kv_tokens, kept.concurrent, kept.engine) == (327_680, 40.0, "vllm 0.33.0")
    assert (kept.gpus, kept.server, kept.kinds) == (
        [["Card", 24_576]],
        machine_room,
        "Card (24 GiB)",
    )


def test_it_outlives_the_engine(
    first: Replica, old: CatalogModel, machine_room: Server, engine: RunningEngine, told: Told
) -> None:
    watched(first, engine)
    Replica.objects.filter(pk=first.pk).update(goal=Goal.OFF, state="stopping")
    rooms.say(machine_room, engines={first.instance: rooms.exited()})
    assert rooms.look(first).state == "off"
    assert known(old, machine_room).kv_tokens == 327_680
    Replica.objects.filter(pk=first.pk).update(goal=Goal.SERVE)
    again = rooms.look(first)
    assert (again.state, again.watch) == ("starting", {})
    assert known(old, machine_room).kv_tokens == 327_680


def test_the_next_engine_has_the_last_word(
    first: Replica, second: Replica, old: CatalogModel, machine_room: Server, engine: RunningEngine
) -> None:
    watched(first, engine)
    with running(SIM_KV_CACHE_TOKENS="409600") as later:
        watched(second, later)
    assert known(old, machine_room).kv_tokens == 409_600
    assert Measurement.objects.count() == 1
    watched(first, engine)  # has said it once; it is not asked every minute
    assert known(old, machine_room).kv_tokens == 409_600


def test_an_engine_that_does_not_answer_is_asked_again(
    first: Replica, old: CatalogModel, machine_room: Server, engine: RunningEngine
) -> None:
    watching.run(first.pk, first.instance)  # nobody listens at its port
    assert Replica.objects.get(pk=first.pk).watch["measured"] is False
    assert Measurement.objects.count() == 0
    watched(first, engine)
    assert known(old, machine_room).kv_tokens == 327_680


def test_nothing_is_kept_for_gpus_that_the_server_does_not_name(
    first: Replica, old: CatalogModel, machine_room: Server, engine: RunningEngine
) -> None:
    rooms.say(machine_room, gpus=[], engines={first.instance: rooms.running()})
    assert measured_with(old, machine_room, [0]) == ""
    assert watched(first, engine).watch["measured"] is False
    assert Measurement.objects.count() == 0
