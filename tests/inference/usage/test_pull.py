"""Usage is taken over once, whole, and with little work."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
import redis
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inference import keys
from inference.gateway import Gateway
from inference.models import Key, Usage, UsageDay
from inference.usage import pull as module
from inference.usage.counters import GatewayCounters
from inference.usage.pull import Pulled
from members import membership
from members.models import User
from tests.fakes.gateway import FakeGateway, Manner, foreign_key
from tests.inference.conftest import advance
from tests.inference.usage.conftest import Clock, refuse

pytestmark = pytest.mark.django_db
Take = Callable[[], Pulled]
Counts = Callable[..., None]


def rows() -> list[tuple[Any, ...]]:
    return list(
        Usage.objects.order_by("day", "key__requested_at", "model").values_list(
            "day", "key", "model", "requests", "prompt_tokens", "completion_tokens", "cached_tokens"
        )
    )


def test_a_day_by_model_and_key(
    key: Key, others_key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    counts(clock.today, key.token, "nan", prompt=10, completion=5, cached=4)
    counts(clock.today, key.token, "qwen")
    counts(clock.today, others_key.token, "nan", requests=3)
    assert take() == Pulled(days=1, changed=3)
    assert rows() == [
        (clock.today, key.pk, "nan", 1, 10, 5, 4),
        (clock.today, key.pk, "qwen", 1, 10, 5, 0),
        (clock.today, others_key.pk, "nan", 3, 10, 5, 0),
    ]
    assert Usage.objects.filter(holder_id=key.holder_id).count() == 2


def test_what_was_read_again_counts_once(
    key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    counts(clock.today, key.token)
    assert [take().changed, take().changed] == [1, 0]
    counts(clock.today, key.token)
    assert [take().changed, take().changed] == [1, 0]
    assert rows() == [(clock.today, key.pk, "nan", 2, 20, 10, 0)]


def test_rows_split_over_routes_and_pages_are_added_up(
    fake: FakeGateway, key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    fake.usage.rows_per_page = 2
    for number in range(5):
        counts(clock.today, key.token, "nan", route=f"/v1/{number}")
    take()
    assert rows() == [(clock.today, key.pk, "nan", 5, 50, 25, 0)]


@pytest.mark.parametrize("page", [1, 2, 3])
@pytest.mark.parametrize("call", range(5))
def test_a_row_that_comes_in_between_pages_pushes_nothing_into_counting_twice(
    fake: FakeGateway, key: Key, counts: Counts, take: Take, clock: Clock, page: int, call: int
) -> None:
    """LiteLLM's pages are in an order in which new rows come in anywhere."""
    fake.usage.rows_per_page = 2
    for number in range(5):
        counts(clock.today, key.token, "nan", route=f"/v1/{number}b", requests=2**number)
    asked: list[int] = []

    def come_in(_page: int) -> None:
        asked.append(_page)
        if len(asked) == call + 1:
            counts(clock.today, key.token, "nan", route=f"/v1/{page}a", requests=100)

    fake.usage.before_page = come_in
    take()
    (row,) = rows()
    assert row[3] in (31, 131)  # as of before or after, never with a row twice or left out
    take()
    assert rows() == [(clock.today, key.pk, "nan", 131, 60, 30, 0)]


def test_while_rows_keep_coming_in_nothing_is_written(
    fake: FakeGateway, key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    fake.usage.rows_per_page = 2
    for number in range(5):
        counts(clock.today, key.token, "nan", route=f"/v1/{number}")

    def come_in(_page: int) -> None:
        counts(clock.today, key.token, "nan", route=f"/v1/0{clock.now().timestamp()}")

    fake.usage.before_page = come_in
    assert take() == Pulled(code="moving")
    assert rows() == []


def test_nothing_is_lost_in_an_outage_of_days(
    fake: FakeGateway, key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    counts(clock.today, key.token)
    take()
    first = clock.today
    fake.stop()
    for _ in range(4):
        clock.forward(hours=6)
        assert take().code == "unreachable"
    clock.forward(days=1)
    for day in (first, first + timedelta(days=1), first + timedelta(days=2)):
        counts(day, key.token)
    fake.start()
    while take().changed:
        pass
    assert [(row[0], row[3]) for row in rows()] == [
        (first, 2),
        (first + timedelta(days=1), 1),
        (first + timedelta(days=2), 1),
    ]


def test_a_long_backlog_takes_several_passes_and_today_is_in_the_first(
    key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    began = clock.today
    take()
    clock.forward(days=30)
    for number in range(31):
        counts(began + timedelta(days=number), key.token)
    take()
    assert rows()[-1][0] == clock.today
    assert len(rows()) == module.DAYS_A_PASS
    for _ in range(3):
        take()
    assert [row[0] for row in rows()] == [began + timedelta(days=n) for n in range(31)]


def test_a_day_that_is_over_is_read_ever_less_and_then_never(
    fake: FakeGateway, key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    clock.set(datetime.combine(clock.today + timedelta(days=1), datetime.min.time(), UTC))
    clock.forward(hours=-1)
    day = clock.today
    take()
    for _ in range(60):
        clock.forward(minutes=30)
        take()
    assert UsageDay.objects.get(day=day).closed is True
    fake.calls.clear()
    counts(day, key.token)
    take()
    assert (len(fake.calls), rows()) == (1, [])  # today's only


def test_a_call_that_ends_after_midnight_counts_on_its_day(
    key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    clock.set(datetime.combine(clock.today + timedelta(days=1), datetime.min.time(), UTC))
    clock.forward(seconds=-30)
    day = clock.today
    take()
    clock.forward(minutes=20)
    take()
    counts(day, key.token)
    clock.forward(minutes=20)
    take()
    assert [row[:4] for row in rows()] == [(day, key.pk, "nan", 1)]


def test_u4_figures_outlive_rotation_deletion_and_the_member(
    key: Key, member: User, counts: Counts, take: Take, clock: Clock, pair: Any
) -> None:
    counts(clock.today, key.token)
    take()
    new = keys.rotate(user=member, public_key=bytes(pair.public_key), actor=member, at_once=True)
    advance(member)
    new.refresh_from_db()
    counts(clock.today, new.token)
    take()
    assert [(row[1], row[3]) for row in rows()] == [(key.pk, 1), (new.pk, 1)]
    holder = key.holder_id
    membership.leave(user=member)
    advance(member)
    take()
    assert Usage.objects.filter(holder_id=holder).count() == 2


def test_others_keys_at_a_shared_gateway_are_left_out(
    fake: FakeGateway, counts: Counts, take: Take, clock: Clock
) -> None:
    counts(clock.today, foreign_key(fake))
    assert (take().changed, rows()) == (0, [])


def test_a_gateway_that_lost_its_rows_takes_nothing_away(
    fake: FakeGateway, key: Key, counts: Counts, take: Take, clock: Clock
) -> None:
    counts(clock.today, key.token, requests=5)
    take()
    fake.usage.days.clear()
    take()
    counts(clock.today, key.token, requests=2)
    take()
    assert rows()[0][3] == 5


@pytest.mark.parametrize("manner", [Manner.FAIL, Manner.GARBAGE, Manner.REFUSE, Manner.HANG])
def test_a_bad_answer_changes_nothing(
    fake: FakeGateway, key: Key, counts: Counts, take: Take, clock: Clock, manner: Manner
) -> None:
    counts(clock.today, key.token)
    take()
    counts(clock.today, key.token)
    fake.misbehave("/user/daily/activity", manner)
    assert take().code
    assert rows()[0][3] == 1
    take()
    assert rows()[0][3] == 2


def test_refusals_are_told_apart_and_count_once(
    key: Key, counts: Counts, take: Take, clock: Clock, store: "redis.Redis"
) -> None:
    counts(clock.today, key.token)
    refuse(store, clock.today, key, "requests", 3)
    refuse(store, clock.today, key, "max_parallel_requests", 2)
    refuse(store, clock.today, key, "failed")
    refuse(store, clock.today, key, "left", 4)
    take()
    take()
    (row,) = Usage.objects.all()
    assert (row.requests, row.refused_rpm, row.refused_parallel, row.failed) == (1, 3, 2, 1)
    assert row.left_early == 4
    refuse(store, clock.today, key, "requests")
    take()
    row.refresh_from_db()
    assert (row.requests, row.refused_rpm, row.refused_parallel, row.failed) == (1, 4, 2, 1)


def test_a_redis_that_forgot_or_is_away_takes_nothing_away(
    client_of_fake: Gateway,
    key: Key,
    counts: Counts,
    take: Take,
    clock: Clock,
    store: "redis.Redis",
) -> None:
    refuse(store, clock.today, key, "requests", 3)
    take()
    store.flushdb()
    counts(clock.today, key.token)
    clock.forward(minutes=10)
    away = GatewayCounters(redis.Redis(port=1, socket_connect_timeout=0.2))
    done = module.pull(client=client_of_fake, counts=away)
    assert done == Pulled(days=1, changed=1, code="no_counters")
    take()
    assert list(Usage.objects.values_list("requests", "refused_rpm")) == [(1, 3)]


@pytest.fixture
def crowd(key: Key, clock: Clock, fake: FakeGateway, take: Take) -> list[str]:
    """Tokens of three hundred keys that were used today, and taken over."""
    made = [
        Key(holder_id=key.holder_id, token=f"{n:064x}"[::-1], state="deleted", public_key=b"")
        for n in range(300)
    ]
    Key.objects.bulk_create(made)
    for one in made:
        fake.usage.count(clock.today, one.token)
    assert take().changed == 300
    fake.calls.clear()
    return [one.token for one in made]


def test_a_pass_costs_what_has_changed(
    fake: FakeGateway, crowd: list[str], counts: Counts, take: Take, clock: Clock
) -> None:
    with CaptureQueriesContext(connection) as idle:
        assert take().changed == 0
    assert fake.calls == []  # nothing is asked of the gateway either
    counts(clock.today, crowd[7])
    with CaptureQueriesContext(connection) as one:
        assert take().changed == 1
    assert [len(idle), len(one)] == [7, 10]
    assert len(fake.calls) == 1


def test_when_many_keys_were_used_the_day_is_read_as_a_whole_and_then_left_in_peace(
    fake: FakeGateway, crowd: list[str], counts: Counts, take: Take, clock: Clock
) -> None:
    for token in crowd[:20]:
        counts(clock.today, token)
    assert (take().changed, len(fake.calls)) == (20, 1)
    counts(clock.today, crowd[0])
    assert (take().changed, len(fake.calls)) == (0, 1)
    cache.clear()
    assert (take().changed, len(fake.calls)) == (1, 2)


def test_a_lost_mark_is_made_good_within_minutes(
    fake: FakeGateway, key: Key, take: Take, clock: Clock
) -> None:
    take()
    fake.usage.count(clock.today, key.token)
    assert take().changed == 0
    clock.forward(minutes=10)
    assert take().changed == 1


def test_what_was_read_whole_without_change_costs_no_look_at_rows(
    crowd: list[str], take: Take, clock: Clock
) -> None:
    clock.forward(minutes=10)
    with CaptureQueriesContext(connection) as whole:
        assert take().changed == 0
    assert 'FROM "inference_usage"' not in " ".join(query["sql"] for query in whole)


def test_one_pass_at_a_time(client_of_fake: Gateway) -> None:
    place = connection.get_connection_params()
    wanted = {name: place[name] for name in ("dbname", "user", "password", "host", "port")}
    with psycopg.connect(**wanted) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [module.LOCK])
        assert module.pull(client=client_of_fake) is None
        other.execute("SELECT pg_advisory_unlock(%s)", [module.LOCK])
    assert module.pull(client=client_of_fake) is not None


def test_a_closed_day_is_read_again_when_an_operator_asks(
    client_of_fake: Gateway, key: Key, counts: Counts
) -> None:
    day = date(2026, 1, 31)
    UsageDay.objects.create(day=day, closed=True)
    counts(day, key.token)
    done = module.pull_again([day], client=client_of_fake)
    assert done == Pulled(days=1, changed=1)
    assert rows()[0][:4] == (day, key.pk, "nan", 1)
