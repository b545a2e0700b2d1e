"""Sums that hold, whatever the clocks do; and the geometry of the chart."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils.translation import override

from inference.models import Key, KeyHolder, Usage
from inference.templatetags.usage import brief, share
from inference.usage import figures
from inference.usage.chart import BOTTOM, HEIGHT, TOP, chart, nice
from inference.usage.figures import Figures, Span, grouped, lines, of_holder, total
from inference.usage.page import Days
from members.models import User
from tests.inference.usage.conftest import Clock

MADRID = ZoneInfo("Europe/Madrid")


@pytest.mark.django_db
@pytest.mark.parametrize("change", [date(2026, 3, 29), date(2026, 10, 25)])
def test_u3_seven_days_are_the_week_when_clocks_change(
    member: User, clock: Clock, change: date
) -> None:
    """Calls at 23:30 and 00:30 in Madrid around the change, on the days that the gateway says."""
    holder = KeyHolder.objects.create(owner_ref=member.public_id, member=member)
    key = Key.objects.create(holder=holder, public_key=b"")
    for number in range(-4, 5):
        for hour in (23, 0):
            local = datetime(change.year, change.month, change.day, hour, 30, tzinfo=MADRID)
            day = (local + timedelta(days=number)).astimezone(ZoneInfo("UTC")).date()
            row, _made = Usage.objects.get_or_create(day=day, key=key, holder=holder, model="nan")
            Usage.objects.filter(pk=row.pk).update(requests=row.requests + 1)
    week = Span(change - timedelta(days=3), change + timedelta(days=3))
    clock.set(datetime(change.year, change.month, change.day, 0, 30, tzinfo=MADRID))
    assert figures.today() == change - timedelta(days=1)  # in UTC it is still yesterday
    rows = of_holder(holder.pk)
    single = [total(lines(rows.filter(day=day))) for day in week.days]
    whole = total(lines(rows.filter(day__gte=week.first, day__lte=week.last)))
    assert len(single) == 7
    assert sum(single, Figures()) == whole
    assert whole.requests == 14
    assert total(lines(rows)).requests == 18


@pytest.mark.parametrize("change", [date(2026, 3, 29), date(2026, 10, 25)])
def test_no_day_is_missing_or_twice_when_clocks_change(clock: Clock, change: date) -> None:
    for hour in range(48):
        clock.set(datetime(change.year, change.month, change.day, tzinfo=MADRID))
        clock.forward(hours=hour)
        days = list(Span.of(7).days)
        assert days == [clock.today - timedelta(days=n) for n in range(6, -1, -1)]


def test_the_table_adds_up_to_the_total_and_leaves_out_days_without_use() -> None:
    span = Span(date(2026, 1, 1), date(2026, 1, 7))
    used = {date(2026, 1, 2): Figures(requests=1, prompt_tokens=7), date(2026, 1, 6): Figures(3)}
    days = Days.of(span, used)
    assert days.rows == [(date(2026, 1, 6), Figures(3)), (date(2026, 1, 2), Figures(1, 7))]
    assert days.total == Figures(requests=4, prompt_tokens=7)
    assert len(days.chart.bars) == 7


def test_bars_are_as_high_as_their_figures() -> None:
    day = date(2026, 1, 1)
    drawn = chart([(day, Figures(prompt_tokens=600, cached_tokens=200, completion_tokens=200))])
    (bar,) = drawn.bars
    assert [box.kind for box in bar.boxes] == ["cached", "fresh", "written"]
    heights = [float(box.height) for box in bar.boxes]
    assert heights == pytest.approx([52, 104, 52], abs=0.11)
    assert float(bar.boxes[-1].y) == pytest.approx(TOP, abs=0.11)
    assert float(bar.boxes[0].y) + heights[0] == pytest.approx(HEIGHT - BOTTOM, abs=0.11)
    assert [line.value for line in drawn.lines] == [0, 200, 400, 600, 800]


def test_an_engine_that_tells_nonsense_breaks_no_chart() -> None:
    figures = Figures(prompt_tokens=5, cached_tokens=9)
    assert (figures.fresh_tokens, figures.cached_share) == (0, 1.0)
    assert [box.kind for box in chart([(date(2026, 1, 1), figures)]).bars[0].boxes] == ["cached"]


@pytest.mark.parametrize(
    ("value", "top"), [(0, 4), (5, 8), (9, 12), (101, 120), (1000, 1200), (9_999, 12_000)]
)
def test_the_axis_ends_on_a_number_that_is_easy_to_read(value: int, top: int) -> None:
    assert nice(value) == top


def test_the_axis_always_reaches_the_highest_bar() -> None:
    for value in [*range(3000), 10**9 - 1, 10**9, 10**15 + 1]:
        assert nice(value) >= value
        assert nice(value) % 4 == 0


def test_no_day_at_all_is_an_empty_chart() -> None:
    assert chart([]).bars == []
    assert grouped([], lambda line: line.day) == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1 k"),
        (4_598_000, "4.6 M"),
        (374_000, "374 k"),
        (10**9, "1 G"),
    ],
)
def test_long_numbers_where_there_is_little_room(value: int, text: str) -> None:
    with override("en"):
        assert brief(value) == text.replace(" ", "\N{NO-BREAK SPACE}")


def test_shares_are_rounded_and_nothing_has_none() -> None:
    with override("en"):
        assert [share(part) for part in (0.776, 1.0, None)] == ["78%", "100%", "–"]
