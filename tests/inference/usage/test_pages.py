"""A member sees her figures and nobody else's; an admin says why before she sees any."""

import csv
import io
import re
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import redis
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import translation
from nacl.public import PrivateKey
from pytest_django import Settings

from inference import keys
from inference.models import Key, Usage, UsageDay, UsageLook
from inference.templatetags.usage import axis_day
from inference.usage import page
from inference.usage.counters import GatewayCounters, counters
from inference.usage.figures import tokens_this_week
from members import personal_data
from members.models import User
from tests.inference.conftest import advance
from tests.inference.usage.conftest import Clock
from tests.people import signed_in

pytestmark = pytest.mark.django_db


def text(response: HttpResponse) -> str:
    return " ".join(response.content.decode().split())


def used(key: Key, day: object, **figures: object) -> Usage:
    values = {"model": "nan", "requests": 1, "prompt_tokens": 10, "completion_tokens": 5, **figures}
    return Usage.objects.create(day=day, key=key, holder_id=key.holder_id, **values)


def csv_rows(response: HttpResponse) -> list[dict[str, str]]:
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    content = b"".join(response.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(content)))


@pytest.fixture
def browser(member: User) -> Client:
    return signed_in(member)


@pytest.fixture
def staff(admin: User) -> Client:
    return signed_in(admin)


# -- Her page ----------------------------------------------------------------------------------


def test_her_figures_by_day_model_and_key(browser: Client, key: Key, clock: Clock) -> None:
    used(key, clock.today, requests=1234, prompt_tokens=2_000_000, cached_tokens=500_000)
    used(key, clock.today - timedelta(days=1), model="qwen", refused_rpm=7, refused_parallel=8)
    used(key, clock.today - timedelta(days=45), requests=777)
    shown = text(browser.get("/usage/"))
    for words in ("1,234", "2,000,000", "500,000", "25%", "<code>qwen</code>", f"sk-…{key.hint}"):
        assert words in shown
    assert "Days are in UTC" in shown
    assert "777" not in shown
    assert "777" in text(browser.get("/usage/?days=90"))
    assert "777" not in text(browser.get("/usage/?days=7"))


def test_the_figures_of_the_chart_are_in_the_table(browser: Client, key: Key, clock: Clock) -> None:
    used(key, clock.today, prompt_tokens=12_345, completion_tokens=678)
    shown = text(browser.get("/usage/"))
    assert "12,345 input tokens (0 from the cache), 678 output tokens" in shown
    assert '<td class="end number" data-label="Input tokens">12,345</td>' in shown
    assert shown.count("<g>") == 30


def test_numbers_and_days_are_written_as_the_reader_does(
    browser: Client, member: User, key: Key, clock: Clock
) -> None:
    used(key, clock.today, requests=1_234_567)
    User.objects.filter(pk=member.pk).update(language="es")
    shown = browser.get("/usage/").content.decode()
    assert "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}567" in shown
    assert 'lang="es"' in shown


def test_empty_is_said_in_words(browser: Client, key: Key) -> None:
    assert "Nothing in these days" in text(browser.get("/usage/"))
    assert "The gateway has not been read yet" in text(browser.get("/usage/"))


def test_how_fresh_it_is(browser: Client, key: Key, clock: Clock) -> None:
    UsageDay.objects.create(day=clock.today, read_at=clock.now())
    assert "Taken over from the gateway at" in text(browser.get("/usage/"))


def test_old_keys_stay_in_the_figures(
    browser: Client, member: User, key: Key, clock: Clock, pair: PrivateKey
) -> None:
    used(key, clock.today)
    new = keys.rotate(user=member, public_key=bytes(pair.public_key), actor=member, at_once=True)
    advance(member)
    new.refresh_from_db()
    used(new, clock.today)
    shown = text(browser.get("/usage/"))
    assert f"sk-…{key.hint}" in shown
    assert f"sk-…{new.hint}" in shown
    assert page.UsagePage.of(member.public_id, 7).total.requests == 2


@pytest.mark.parametrize("asked", ["", "0", "-7", "7.0", "1000", "all", "7;--", "٧", "9" * 40])
def test_any_other_span_is_the_usual_one(browser: Client, key: Key, asked: str) -> None:
    shown = text(browser.get("/usage/", {"days": asked}))
    assert 'href="?days=30" aria-current="page"' in shown


# -- Only her own --------------------------------------------------------------------------------


def test_nobody_elses_whatever_she_asks_for(
    browser: Client, member: User, key: Key, others_key: Key, clock: Clock
) -> None:
    used(key, clock.today)
    used(others_key, clock.today, requests=987_654, model="hers-alone")
    for name in ("holder", "owner_ref", "user", "key", "member", "id", "pk"):
        for value in (others_key.holder_id, others_key.pk, others_key.token):
            query = {name: str(value), "days": "90"}
            for path in ("/usage/", "/usage/usage.csv"):
                answer = browser.get(path, query)
                body = b"".join(answer) if answer.streaming else answer.content
                assert b"hers-alone" not in body
                assert b"987,654" not in body
                assert b"987654" not in body
    for path in (f"/usage/{others_key.holder_id}/", f"/usage/{others_key.pk}"):
        assert browser.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/usage/", "/usage/live", "/usage/usage.csv"])
def test_who_may_open_it(path: str, outsider: User, waiting: object, admin: User) -> None:
    assert Client().get(path)["Location"] == f"/accounts/login/?next={path}"
    assert signed_in(outsider).get(path).status_code == 403
    assert signed_in(admin).get(path).status_code == 403  # staff are no members


@pytest.mark.parametrize("path", ["/usage/", "/usage/usage.csv"])
def test_it_is_cached_nowhere_and_only_read(browser: Client, path: str) -> None:
    assert "no-store" in browser.get(path)["Cache-Control"]
    assert browser.post(path).status_code == 405


# -- Live ------------------------------------------------------------------------------------------


def going_on(store: "redis.Redis", key: Key, clock: Clock, *, running: int, asked: int) -> None:
    """As LiteLLM's limiter writes it."""
    place = f"{{api_key:{key.token}}}"
    now = clock.now().timestamp()
    for number in range(running):
        store.zadd(f"{place}:max_parallel_requests", {f"slot-{number}": now - number})
    store.zadd(f"{place}:max_parallel_requests", {"left by a dead one": now - 3601})
    store.set(f"{place}:window", int(now) - 20)
    store.set(f"{place}:requests", asked)


def live(browser: Client) -> str:
    return text(browser.get("/usage/live", headers={"HX-Request": "true"}))


def test_what_runs_now_and_what_is_left_of_the_minute(
    browser: Client, key: Key, clock: Clock, store: "redis.Redis"
) -> None:
    going_on(store, key, clock, running=2, asked=13)
    for shown in (live(browser), text(browser.get("/usage/"))):
        assert "<dd> 2 of 5 </dd>" in shown
        assert "<dd> 87 of 100 </dd>" in shown
        assert 'hx-trigger="every 5s"' in shown
    assert "<html" not in live(browser)
    assert browser.get("/usage/live")["Location"] == "/usage/"


def test_an_old_minute_is_over_and_refused_requests_leave_nothing_below_zero(
    browser: Client, key: Key, clock: Clock, store: "redis.Redis"
) -> None:
    going_on(store, key, clock, running=0, asked=150)
    assert "<dd> 0 of 100 </dd>" in live(browser)
    store.set(f"{{api_key:{key.token}}}:window", int(clock.now().timestamp()) - 61)
    assert "<dd> 100 of 100 </dd>" in live(browser)
    assert "A minute begins with your next request" in live(browser)


def test_both_keys_of_a_rotation_together(
    browser: Client,
    member: User,
    key: Key,
    clock: Clock,
    store: "redis.Redis",
    pair: PrivateKey,
) -> None:
    new = keys.rotate(user=member, public_key=bytes(pair.public_key), actor=member)
    advance(member)
    new.refresh_from_db()
    going_on(store, key, clock, running=1, asked=30)  # 10 of them refused
    going_on(store, new, clock, running=3, asked=5)
    shown = live(browser)
    assert "<dd> 4 of 5 </dd>" in shown
    assert "<dd> 75 of 100 </dd>" in shown


def test_without_redis_the_page_says_that_it_does_not_know(
    browser: Client, key: Key, settings: Settings
) -> None:
    settings.GATEWAY_REDIS_URL = "redis://127.0.0.1:1/0"
    counters.cache_clear()
    try:
        assert "counters can't be read" in live(browser)
        assert browser.get("/usage/").status_code == 200
    finally:
        counters.cache_clear()


def test_without_a_key_there_is_nothing_to_count(browser: Client) -> None:
    assert "You have no working key now" in live(browser)


def test_a_member_signed_out_meanwhile_reloads(outsider: User) -> None:
    answer = signed_in(outsider).get("/usage/live", headers={"HX-Request": "true"})
    assert answer["HX-Refresh"] == "true"


# -- The file ------------------------------------------------------------------------------------


def test_the_file_has_a_line_for_each_day_model_and_key(
    browser: Client, key: Key, clock: Clock
) -> None:
    used(key, clock.today, cached_tokens=3, refused_rpm=1, left_early=2)
    used(key, clock.today - timedelta(days=400), requests=9)
    (row,) = csv_rows(browser.get("/usage/usage.csv?days=7"))
    assert row == {
        "day_utc": clock.today.isoformat(),
        "model": "nan",
        "key": key.hint if key.hint[0] not in "-" else f"'{key.hint}",
        "requests": "1",
        "input_tokens": "10",
        "cached_input_tokens": "3",
        "output_tokens": "5",
        "refused_requests_a_minute": "1",
        "refused_in_parallel": "0",
        "failed": "0",
        "left_before_first_word": "2",
    }
    everything = csv_rows(browser.get("/usage/usage.csv?days=all"))
    assert [line["requests"] for line in everything] == ["9", "1"]


COLUMNS = {
    "Requests": "requests",
    "Input tokens": "input_tokens",
    "From the cache": "cached_input_tokens",
    "Output tokens": "output_tokens",
    "Refused: a minute": "refused_requests_a_minute",
    "Refused: in parallel": "refused_in_parallel",
    "Failed": "failed",
    "Left early": "left_before_first_word",
}


def sums(part: str) -> Counter[str]:
    """Of all cells of a table's part, by the file's names of the columns."""
    cells = re.findall(r'data-label="([^"]+)">([\d,]+)', part)
    found: Counter[str] = Counter()
    for label, value in cells:
        found[COLUMNS[label]] += int(value.replace(",", ""))
    return found


@pytest.mark.parametrize("length", [7, 30, 90])
def test_days_models_keys_total_and_file_are_the_same_figures(
    browser: Client, make_key: Callable[[User], Key], member: User, clock: Clock, length: int
) -> None:
    """Around the change of clocks in October, with an old key; a day on each side of the edge."""
    clock.set(datetime(2026, 10, 28, 23, 30, tzinfo=ZoneInfo("Europe/Madrid")))
    old, key = make_key(member), make_key(member)
    for back in range(100):
        day = clock.today - timedelta(days=back)
        used(key, day, requests=back + 1, prompt_tokens=1000 + back, cached_tokens=back, failed=1)
        used(old, day, model="qwen", completion_tokens=7 * back, refused_rpm=back % 3, left_early=2)
    shown = text(browser.get(f"/usage/?days={length}"))
    days, models, keys_ = re.findall(r'<table class="stack">.*?</table>', shown)
    file = csv_rows(browser.get(f"/usage/usage.csv?days={length}"))
    told = {name: sum(int(row[name]) for row in file) for name in COLUMNS.values()}
    body, total = days.split("<tfoot>")
    assert body.count('<th scope="row">') == length
    assert len({row["day_utc"] for row in file}) == length
    for part in (body, total, models, keys_):
        assert sums(part) == +Counter(told)
    assert told["requests"] == length + length * (length + 1) // 2


def test_no_cell_of_the_file_is_a_formula(browser: Client, key: Key, clock: Clock) -> None:
    Key.objects.filter(pk=key.pk).update(hint="-2+3")
    for model in ("=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\tx", "\rx"):
        used(key, clock.today, model=model)
    for row in csv_rows(browser.get("/usage/usage.csv")):
        assert row["model"][0] == "'"
        assert row["key"] == "'-2+3"


# -- Work ----------------------------------------------------------------------------------------


def test_three_years_of_days_cost_as_many_queries_as_one(
    browser: Client, key: Key, clock: Clock
) -> None:
    used(key, clock.today)
    browser.get("/usage/?days=90")
    with CaptureQueriesContext(connection) as one:
        browser.get("/usage/?days=90")
    old = [Key(holder_id=key.holder_id, state="deleted", public_key=b"") for _ in range(10)]
    Key.objects.bulk_create(old)
    Usage.objects.bulk_create(
        Usage(
            day=clock.today - timedelta(days=n), key=old[n % 10], holder_id=key.holder_id, model=m
        )
        for n in range(3 * 365)
        for m in ("nan", "qwen")
    )
    with CaptureQueriesContext(connection) as many:
        assert browser.get("/usage/?days=90").status_code == 200
    assert len(many) == len(one)
    assert len(csv_rows(browser.get("/usage/usage.csv?days=all"))) == 2191


# -- Staff ---------------------------------------------------------------------------------------


def test_staff_see_totals_and_opaque_ids(
    staff: Client, member: User, key: Key, others_key: Key, clock: Clock
) -> None:
    used(key, clock.today, requests=1000)
    used(others_key, clock.today, requests=234)
    shown = text(staff.get("/staff/usage/"))
    assert "1,234" in shown
    for owner in (key.holder_id, others_key.holder_id):
        assert f"/staff/usage/{owner}/" in shown
    for secret in (member.email, member.name, key.hint, others_key.hint):
        assert secret not in shown


def test_staff_pages_are_for_staff(browser: Client, key: Key, admin: User) -> None:
    look = UsageLook.objects.create(holder_id=key.holder_id, actor=admin, reason="Asked by her.")
    for path in (
        "/staff/usage/",
        f"/staff/usage/{key.holder_id}/",
        f"/staff/usage/looks/{look.pk}/",
    ):
        assert browser.get(path).status_code == 403
        assert Client().get(path).status_code == 302


def test_opening_one_takes_a_reason_that_is_recorded_and_that_she_reads(
    staff: Client, browser: Client, admin: User, key: Key, clock: Clock
) -> None:
    used(key, clock.today, model="her-model")
    path = f"/staff/usage/{key.holder_id}/"
    assert "her-model" not in text(staff.get(path))
    for reason in ("", "   ", "because"):
        answer = staff.post(path, {"reason": reason})
        assert (answer.status_code, UsageLook.objects.count()) == (422, 0)
    opened = staff.post(path, {"reason": "Says that her calls are not counted."})
    look = UsageLook.objects.get()
    assert (look.holder_id, look.actor) == (key.holder_id, admin)
    assert opened["Location"] == f"/staff/usage/looks/{look.pk}/"
    shown = text(staff.get(opened["Location"]))
    assert "her-model" in shown
    assert "Says that her calls are not counted." in shown
    hers = text(browser.get("/usage/"))
    assert "Says that her calls are not counted." in hers
    assert admin.name not in hers


def test_a_reason_opens_for_one_admin_and_an_hour(
    staff: Client, admin: User, other_admin: User, key: Key, clock: Clock
) -> None:
    look = UsageLook.objects.create(
        holder_id=key.holder_id, actor=admin, reason="Asked by her.", at=clock.now()
    )
    path = f"/staff/usage/looks/{look.pk}/"
    assert staff.get(path).status_code == 200
    assert signed_in(other_admin).get(path).status_code == 404
    UsageLook.objects.update(at=clock.now() - timedelta(minutes=61))
    assert staff.get(path)["Location"] == f"/staff/usage/{key.holder_id}/"
    assert staff.get(f"/staff/usage/{uuid.uuid4()}/").status_code == 404


def test_staff_page_costs_the_same_for_many(
    staff: Client, key: Key, others_key: Key, clock: Clock
) -> None:
    used(key, clock.today)
    staff.get("/staff/usage/")
    with CaptureQueriesContext(connection) as one:
        staff.get("/staff/usage/")
    for number in range(20):
        used(others_key, clock.today - timedelta(days=number), model=f"m{number}")
    with CaptureQueriesContext(connection) as many:
        staff.get("/staff/usage/")
    assert len(many) == len(one)


# -- Elsewhere -----------------------------------------------------------------------------------


def test_tokens_of_this_week(key: Key, others_key: Key, clock: Clock) -> None:
    used(key, clock.today)
    used(others_key, clock.today - timedelta(days=6))
    used(key, clock.today - timedelta(days=7))
    assert tokens_this_week() == 30
    used(key, clock.today, model="qwen")
    assert tokens_this_week() == 30  # kept for a minute


def test_counters_read_several_keys_in_one_trip(store: "redis.Redis", key: Key) -> None:
    assert len(GatewayCounters(store).now([key.token, "0" * 64])) == 2


def test_home_has_her_day_and_the_landing_page_the_week(
    browser: Client, key: Key, others_key: Key, clock: Clock
) -> None:
    used(key, clock.today, requests=42)
    used(others_key, clock.today, requests=9999)
    home = text(browser.get("/"))
    assert "<dt>requests</dt><dd>42</dd>" in home
    assert f"sk-…{key.hint}" in home
    assert "<dt>tokens served in seven days</dt><dd>30</dd>" in text(
        Client().get("/?", headers={"accept-language": "en"})
    )


def test_without_a_key_home_is_the_page_that_makes_one(browser: Client) -> None:
    assert browser.get("/")["Location"] == "/key/"


def test_what_she_takes_with_her(member: User, key: Key, clock: Clock, admin: User) -> None:
    used(key, clock.today, requests=42)
    UsageLook.objects.create(holder_id=key.holder_id, actor=admin, reason="Asked by her.")
    found = personal_data.export(user=member)
    assert [row["requests"] for row in found["usage"]] == [42]
    assert [row["reason"] for row in found["usage_opened_by_admins"]] == ["Asked by her."]


@pytest.mark.parametrize(("language", "said"), [("es", "1 nov"), ("en", "1 Nov")])
def test_a_day_below_the_chart_is_in_the_readers_language(language: str, said: str) -> None:
    with translation.override(language):
        assert axis_day(date(2026, 11, 1)) == said
