"""What servers say: the newest counts, nonsense does not, silence is noticed."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from redis import Redis

from inference.fleet import reports, servers, tell
from inference.fleet.errors import FleetRefused
from inference.heartbeats import ASKED, UNBROKEN
from inference.models import Alert, FleetEvent, Heartbeat, Replica, Server
from tests.inference.fleet import rooms
from tests.inference.fleet.conftest import Told

pytestmark = pytest.mark.django_db


def report(serial: int, **more: Any) -> dict[str, Any]:
    return {
        "serial": serial,
        "engine": {"kind": "vllm", "version": "0.33.0"},
        "driver": "systemd",
        "address": "10.0.0.7",
        "gpus": [rooms.gpu(0)],
        "engines": {},
        **more,
    }


def test_the_first_report_brings_the_server_in() -> None:
    server, _ = servers.invite(name="two", seats=20, actor=None)
    assert (server.joined_at, server.silent(timezone.now())) == (None, True)
    assert reports.take("two", report(1))
    server.refresh_from_db()
    assert (server.address, server.engine, server.driver) == ("10.0.0.7", "vllm 0.33.0", "systemd")
    assert not server.silent(timezone.now())
    assert server.free_mib(0) == 24_476
    assert list(FleetEvent.objects.values_list("what", flat=True)) == ["invited", "joined"]


def test_an_older_report_changes_nothing(machine_room: Server) -> None:
    assert reports.take("one", report(100, address="10.0.0.1"))
    assert not reports.take("one", report(99, address="10.0.0.2"))
    assert not reports.take("one", report(100, address="10.0.0.3"))
    machine_room.refresh_from_db()
    assert machine_room.address == "10.0.0.1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"serial": "now"},
        {"gpus": [{"index": 0}]},
        {"engine": None},
        {"engines": []},
        {"address": 7},
        {"log": "x" * 600_000},
        {"serial": 2**62},
        {"gpus": [{"index": 0, "total_mib": "x", "used_mib": 1}]},
        {"engines": {"a": "b"}},
        {"engines": {"a": {"state": "running", "cause": "x"}}},
        {"preflights": {"s1": {"state": "done", "checks": [{"ok": True}]}}},
        {"fetches": []},
        {"weights": [1]},
        {"driver": "a\x00b"},
    ],
)
def test_what_can_not_be_read_is_refused(machine_room: Server, wrong: dict[str, Any]) -> None:
    before = Server.objects.values().get()
    assert not reports.take("one", {**report(10**18), **wrong})
    assert not reports.take("nobody", report(1))
    assert Server.objects.values().get() == before


def test_silence_opens_one_alert_and_a_word_closes_it(machine_room: Server, told: Told) -> None:
    def alerts() -> list[tuple[str, bool]]:
        return [(a.code, a.closed_at is None) for a in Alert.objects.all()]

    reports.ask_all()
    assert (told.names(), alerts()) == (["gpu_report"], [])
    long_ago = timezone.now() - timedelta(seconds=31)
    Server.objects.update(reported_at=long_ago)
    reports.ask_all()
    assert alerts() == []  # nobody had asked it before
    Heartbeat.objects.filter(name=UNBROKEN).update(at=long_ago)
    reports.ask_all()
    reports.ask_all()
    assert alerts() == [("server_silent", True)]
    reports.take("one", report(10**18))
    reports.ask_all()
    assert alerts() == [("server_silent", False)]


def test_a_server_that_nobody_asked_is_not_called_silent(machine_room: Server, told: Told) -> None:
    """After a stop of everything each server's last word is old."""
    reports.ask_all()
    hour_ago = timezone.now() - timedelta(hours=1)
    Heartbeat.objects.filter(name__in=(ASKED, UNBROKEN)).update(at=hour_ago)
    Server.objects.update(reported_at=hour_ago)
    reports.ask_all()
    assert not Alert.objects.exists()
    Heartbeat.objects.filter(name=UNBROKEN).update(at=timezone.now() - timedelta(seconds=31))
    reports.ask_all()
    assert Alert.objects.get().code == "server_silent"


def test_engines_that_ended_are_forgotten_when_no_replica_asks_about_them(
    first: Replica, machine_room: Server, told: Told
) -> None:
    """Else a report grows with each engine that ever ran, until it is too large to be taken."""
    engines = {
        first.instance: rooms.exited("died"),
        "r1-g0-v0": rooms.exited("died"),
        "r1-g0-v1": rooms.exited(left=1),
        "r1-g0-v2": rooms.running(),
    }
    rooms.say(machine_room, engines=engines)
    reports.ask_all()
    assert told == [("gpu_forget", ("one", "r1-g0-v0")), ("gpu_report", ("one",))]
    told.clear()
    rooms.say(machine_room, engines={f"r9-g{n}": rooms.exited() for n in range(30)})
    reports.ask_all()
    assert told.names() == ["gpu_forget"] * reports.FORGOTTEN_AT_ONCE + ["gpu_report"]


def test_a_token_lets_one_host_in_once(settings: Any) -> None:
    settings.GPU_REDIS_URL, settings.ENGINE_API_KEY = "redis://:pw@10.0.0.1/0", "sk-engine"
    _, token = servers.invite(name="two", seats=20, actor=None)
    assert token not in str(Server.objects.values().get())
    given = servers.join(token=token, address="10.0.0.7")
    assert (given["NAN_GPU_NAME"], given["REDIS_URL"]) == ("two", "redis://:pw@10.0.0.1/0")
    for again in (token, "", "x" * 43):
        with pytest.raises(FleetRefused) as refusal:
            servers.join(token=again, address="10.0.0.8")
        assert refusal.value.code == "token_unknown"
    _, late = servers.invite(name="two", seats=20, actor=None)
    Server.objects.update(join_until=timezone.now() - timedelta(seconds=1))
    with pytest.raises(FleetRefused):
        servers.join(token=late, address="10.0.0.7")


def test_what_waits_for_a_server_that_is_away_does_not_grow() -> None:
    server, _ = servers.invite(name="long-away", seats=20, actor=None)
    broker = Redis.from_url(settings.CELERY_BROKER_URL)
    broker.delete(server.queue)
    for _ in range(200):
        tell.report(server)
    assert 0 < broker.llen(server.queue) <= tell.UNREAD + 1
    tell.drop_queue(server)
