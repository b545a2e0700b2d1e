"""What an installation on one machine begins with, and how it goes on with other ports."""

import pytest

from inference.fleet import first as start
from inference.models import CatalogModel, Replica, Server, Slot
from tests.inference.fleet import rooms

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("told")]


def test_the_first_start_makes_a_server_a_catalogue_and_slots_once() -> None:
    server = start.create(server="local", seats=50, engine="simulator")
    assert set(Slot.objects.values_list("name", "kind")) == {
        ("nan", "chat"),
        ("nan-embed", "embedding"),
    }
    assert CatalogModel.objects.filter(kind="chat").count() >= 4
    CatalogModel.objects.filter(name="gpt-oss-20b").update(offered=False)
    assert start.create(server="local", seats=9, engine="simulator") == server
    assert (Server.objects.get().seats, CatalogModel.objects.offered().count()) == (
        50,
        CatalogModel.objects.count() - 1,
    )


def test_engines_that_ended_follow_the_ports_of_the_next_run(
    machine_room: Server, first: Replica, second: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port of one that still runs is its own."""
    monkeypatch.setattr(start, "REPORT_SECONDS", 0)
    engines = {first.instance: rooms.exited("killed"), second.instance: rooms.running()}
    rooms.say(machine_room, engines=engines)
    start.fill(server=Server.objects.get(), ports=[9001, 9002, 9003])
    assert list(Replica.objects.values_list("port", flat=True)) == [9001, 8102]


def test_one_that_was_being_started_meanwhile_follows_when_its_old_port_was_taken(
    machine_room: Server, first: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "REPORT_SECONDS", 0)
    ours = Replica.objects.filter(pk=first.pk)
    ours.update(state="starting")
    rooms.say(machine_room, engines={})
    start.fill(server=Server.objects.get(), ports=[9001])
    assert ours.get().port == 8101

    ours.update(state="failed", error_code="port_taken")
    with pytest.raises(start.NotServing):
        start.wait_for_models(
            server=Server.objects.get(), ports=[9001], seconds=0.1, say=lambda _: None
        )
    assert ours.get().port == 9001
