"""Twice a minute engines and the pool are looked at; counters become what happened since."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from inference.fleet import sight
from inference.heartbeats import looking
from inference.models import (
    ApiSample,
    Heartbeat,
    LastCount,
    Replica,
    ReplicaSample,
    Slot,
    SlotSample,
)
from inference.pool import Pool
from inference.status import sampling
from tests.fakes.raw_http import Connection, RawServer, Request, post
from tests.inference.pool.proxy import CHAT, Proxy, running
from tests.inference.status.conftest import Counting
from tests.ports import free_port

pytestmark = pytest.mark.django_db
START = timezone.now()


@pytest.fixture(autouse=True)
def _no_pool(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where HAProxy would be; a test that starts one puts it there."""
    monkeypatch.setattr(sampling, "pool", lambda: Pool(tmp_path))
    settings.API_URL = f"http://127.0.0.1:{free_port()}"


@pytest.fixture
def engine(replica: Replica, listening: int) -> Replica:
    replica.server.address = "127.0.0.1"
    replica.server.save()
    replica.port = listening
    replica.save()
    return replica


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_counters_become_what_happened_since(engine: Replica, counting: Counting) -> None:
    counting.generated, counting.first_tokens = 1000, [0.05] * 10
    assert sampling.take(after(0))
    assert ReplicaSample.objects.count() == 0  # nothing to compare with
    counting.generated += 600
    counting.first_tokens += [0.3, 0.3, 0.7, 9.0]
    counting.running, counting.waiting, counting.kv_usage = 3, 1, 0.25
    assert sampling.take(after(30))
    row = ReplicaSample.objects.get()
    assert (row.slot_id, row.replica_id, row.model_id) == (
        engine.slot_id,
        engine.pk,
        engine.model_id,
    )
    assert (row.seconds, row.generated, row.running, row.waiting) == (30, 600, 3, 1)
    assert (row.first_tokens, round(row.first_token_seconds, 3)) == (4, 10.3)
    assert row.first_token_buckets == {"0.5": 2, "1.0": 1, "inf": 1}
    assert (row.kv_usage, row.drafted, row.accepted) == (0.25, None, None)


def test_speculative_acceptance(engine: Replica, counting: Counting) -> None:
    counting.drafted, counting.accepted = 100, 80
    sampling.take(after(0))
    counting.drafted, counting.accepted = 200, 90
    sampling.take(after(30))
    row = ReplicaSample.objects.get()
    assert (row.drafted, row.accepted) == (100, 10)


def test_another_engine_begins_anew(engine: Replica, counting: Counting) -> None:
    counting.generated = 1000
    sampling.take(after(0))
    Replica.objects.update(instance="r1-g2-v9")
    counting.generated = 2000
    sampling.take(after(30))
    counting.generated = 2100
    sampling.take(after(60))
    counting.generated = 50  # the same name, but its counters are back at zero
    sampling.take(after(90))
    assert list(ReplicaSample.objects.values_list("generated", flat=True)) == [100]


def test_what_was_counted_in_a_pause_belongs_to_no_half_minute(
    engine: Replica, counting: Counting
) -> None:
    sampling.take(after(0))
    counting.generated = 1e6
    sampling.take(after(600))
    assert ReplicaSample.objects.count() == 0
    assert SlotSample.objects.order_by("at").last().seconds == 30


def test_a_message_delivered_twice_takes_one_sample(engine: Replica) -> None:
    assert [sampling.take(after(second)) for second in (0, 0, 5, 31)] == [True, False, False, True]
    assert SlotSample.objects.count() == 2
    assert Heartbeat.objects.get().at == after(31)


def test_an_engine_that_does_not_answer_has_no_sample(engine: Replica, counting: Counting) -> None:
    sampling.take(after(0))
    counting.away = True
    sampling.take(after(30))
    assert ReplicaSample.objects.count() == 0
    assert SlotSample.objects.count() == 2


def test_only_engines_in_service_are_asked(engine: Replica) -> None:
    Replica.objects.update(state="starting")
    sampling.take(after(0))
    assert not LastCount.objects.filter(subject=f"r{engine.pk}").exists()


def test_without_a_pool_a_slot_is_down(engine: Replica, slot: Slot) -> None:
    sampling.take(after(0))
    row = SlotSample.objects.get()
    assert (row.up, row.wanted, row.seconds, row.down_seconds, row.rotation_seconds) == (
        0, 1, 30, 30, 0,
    )  # fmt: skip
    Slot.objects.update(rotating_since=after(10))
    sampling.take(after(30))
    assert SlotSample.objects.order_by("at").last().rotation_seconds == 30


def test_nothing_is_said_of_a_slot_without_a_model(engine: Replica) -> None:
    Replica.objects.update(goal="off", state="off")
    Slot.objects.update(model=None)
    sampling.take(after(0))
    assert SlotSample.objects.count() == 0


def test_a_slot_that_admins_took_out_is_neither_up_nor_down(engine: Replica) -> None:
    Replica.objects.update(goal="off", state="off")
    sampling.take(after(0))
    row = SlotSample.objects.get()
    assert (row.up, row.wanted, row.seconds, row.down_seconds, row.out_seconds) == (
        0, 0, 30, 0, 30,
    )  # fmt: skip


def test_what_the_pool_says(engine: Replica, counting: Counting, tmp_path: Path) -> None:
    place = sight.place(engine)
    with running(tmp_path) as proxy:
        sampling.take(after(0))
        proxy.until_ready(place)
        sampling.take(after(30))
        counting_errors(proxy, 3)
        sampling.take(after(60))
        proxy.restart()
        proxy.pool.set_names({"chat": "slot01"})
        counting_errors(proxy, 2)
        sampling.take(after(90))
    seen = SlotSample.objects.order_by("at").values_list("up", "errors", "down_seconds")
    assert [row[0] for row in seen][:3] == [0, 1, 1]
    assert [row[1] for row in seen] == [0, 0, 3, 2]
    assert [row[2] for row in seen][:3] == [30, 0, 0]


def counting_errors(proxy: Proxy, count: int) -> None:
    """Answers of the engine: it knows no such route and ends the connection."""
    for _ in range(count):
        assert post(proxy.port, CHAT).status >= 500


def test_queries_do_not_grow_with_the_fleet(
    engine: Replica, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(2, 8):
        Replica.objects.create(
            slot=engine.slot, server=engine.server, number=number, port=9000 + number,
            goal="serve", goal_model=engine.goal_model, model=engine.model, state="starting",
        )  # fmt: skip
    with django_assert_max_num_queries(16):
        sampling.take(after(0))


# -- The API ------------------------------------------------------------------------------------
def test_how_the_api_answered(engine: Replica, settings: Settings) -> None:
    answers = [(401, "invalid_api_key"), (503, "service_unavailable"), (401, "invalid_api_key")]

    def answer(request: Request, connection: Connection) -> None:
        status, code = answers.pop(0)
        connection.answer(status, json.dumps({"error": {"code": code}}).encode())

    with RawServer(answer) as api:
        settings.API_URL = f"http://127.0.0.1:{api.port}"
        for seconds in (0, 30, 60):
            sampling.take(after(seconds))
    settings.API_URL = f"http://127.0.0.1:{free_port()}"
    sampling.take(after(95))
    seen = ApiSample.objects.order_by("at").values_list("state", "seconds", "down_seconds")
    assert list(seen) == [("up", 30, 0), ("gateway", 30, 30), ("up", 30, 0), ("edge", 35, 35)]


# -- A stop and a start of everything -----------------------------------------------------------
def test_after_a_break_the_first_look_says_nothing(engine: Replica, slot: Slot) -> None:
    """Whether it took a minute or a night: nobody looked."""
    sampling.take(after(0))
    looking(after(1))
    looking(after(50))
    assert sampling.take(after(51))
    assert (SlotSample.objects.count(), ApiSample.objects.count()) == (1, 1)
    looking(after(55))
    sampling.take(after(81))
    assert SlotSample.objects.count() == ApiSample.objects.count() == 2
    assert SlotSample.objects.order_by("at").last().seconds == 30


def test_engines_that_just_begin_are_not_down(engine: Replica, slot: Slot) -> None:
    Replica.objects.update(state="starting", state_since=after(0))
    sampling.take(after(0))
    assert SlotSample.objects.count() == 0
    Replica.objects.update(attempts=1)  # they begin again, since they had failed
    sampling.take(after(30))
    assert SlotSample.objects.get().down_seconds == 30
