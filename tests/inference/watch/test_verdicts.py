"""Verdicts over series of samples, each with the story it tells."""

from dataclasses import replace
from typing import Any

import pytest

from inference.engine_metrics import Histogram
from inference.watch import Sample, Verdict, judge, pause_before_next
from inference.watch.samples import Counts
from inference.watch.verdicts import HURRY, PAUSE


def counts(minute: int, **changes: Any) -> Counts:
    """A replica with 30 requests and 3000 tokens a minute, first tokens after 0.2 s."""
    ttft = changes.pop("ttft", Histogram(sum=6.0 * minute, count=30.0 * minute))
    usual = {"finished": 30.0 * minute, "errors": 0.0, "generated": 3000.0 * minute, "waiting": 0}
    return Counts(ttft=ttft, **{**usual, **changes})


def sample(minute: int, answered: Any = "ok", code: str = "", **changes: Any) -> Sample:
    told = counts(minute, **changes)
    return Sample(at=60.0 * minute, answered=answered, seconds=0.3, code=code, counts=told)


def failed(minute: int, code: str = "timeout", **changes: Any) -> Sample:
    return sample(minute, "failed", code, **changes)


WELL = [sample(minute) for minute in range(10)]
STILL = {"generated": 27_000.0, "finished": 270.0}
"""Totals that stand where they stood at minute 9."""


def test_a_well_replica() -> None:
    assert judge([]) == Verdict(state="ok")
    assert judge(WELL) == Verdict(state="ok")
    assert judge(WELL[:1]) == Verdict(state="ok")


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("timeout", "watch_hang"),
        ("unreachable", "watch_unreachable"),
        ("server_error", "watch_failing"),
        ("unreadable", "watch_failing"),
    ],
)
def test_one_failure_is_suspect_and_two_in_a_row_are_bad(code: str, named: str) -> None:
    once = [*WELL, failed(10, code, **STILL)]
    assert judge(once) == Verdict(state="suspect", code=named)
    assert judge([*once, failed(11, code, **STILL)]) == Verdict(state="bad", code=named)
    assert judge([*once, sample(11)]) == Verdict(state="ok")


def test_a_hang_is_found_within_three_minutes() -> None:
    """It begins right after a good sample; each failing one takes its 20 s."""
    hung_at, clock, series = 540.0, 540.0, list(WELL)
    while judge(series).state != "bad":
        clock += pause_before_next(judge(series)) + 20
        told = counts(9)
        series.append(Sample(at=clock, answered="failed", seconds=20, code="timeout", counts=told))
    assert judge(series) == Verdict(state="bad", code="watch_hang")
    assert clock - hung_at == 115


def test_a_hang_whose_metrics_hang_too() -> None:
    blind = [
        Sample(at=600.0 + number, answered="failed", seconds=20, code="timeout")
        for number in (0, 1)
    ]
    assert judge([*WELL, *blind]) == Verdict(state="bad", code="watch_hang")


def test_a_busy_engine_is_left_where_it_is() -> None:
    """It makes tokens for others, however often ours has to wait too long."""
    series = [*WELL, *(failed(minute, waiting=400) for minute in range(10, 20))]
    assert judge(series) == Verdict(state="suspect", code="watch_busy")


def test_the_pause_is_shorter_when_something_is_odd() -> None:
    assert pause_before_next(Verdict(state="ok")) == PAUSE == 60
    assert pause_before_next(Verdict(state="suspect", code="watch_hang")) == HURRY == 15


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (0.1, Verdict(state="ok")),
        (0.3, Verdict(state="suspect", code="watch_errors")),
        (0.6, Verdict(state="bad", code="watch_errors")),
    ],
)
def test_errors_of_the_last_five_minutes(share: float, verdict: Verdict) -> None:
    """30 requests a minute, of which a share ends with an error."""
    series = [sample(m, errors=max(0.0, 30.0 * share * (m - 9))) for m in range(16)]
    assert judge(series) == verdict


def test_errors_of_a_few_requests_are_chance() -> None:
    few = [sample(m, finished=270.0 + m, errors=float(m)) for m in range(10, 15)]
    assert judge(few) == Verdict(state="ok")


def test_a_start_anew_is_no_negative_rate() -> None:
    anew = [sample(m, finished=30.0 * (m - 10), generated=0.0) for m in range(10, 14)]
    assert judge([*WELL, *anew]) == Verdict(state="ok")
    ill = [sample(m, finished=30.0 * (m - 10), errors=18.0 * (m - 10)) for m in range(10, 14)]
    assert judge([*WELL, *ill]) == Verdict(state="bad", code="watch_errors")


def slower(by: float) -> list[Sample]:
    """Ten minutes as in the beginning, then first tokens after `by` seconds."""
    sums = [6.0 * min(m, 10) + 30.0 * by * max(0, m - 10) for m in range(20)]
    return [sample(m, ttft=Histogram(sum=s, count=30.0 * m)) for m, s in enumerate(sums)]


def test_one_that_serves_alone_is_held_against_its_own_beginning() -> None:
    assert judge(slower(0.2)) == Verdict(state="ok")
    assert judge(slower(1.5)) == Verdict(state="ok")  # much slower, but not slow
    late = slower(3.0)
    assert judge(late[:11]) == Verdict(state="ok")
    assert judge(late[:12]) == judge(late[:13]) == Verdict(state="suspect", code="watch_slow")
    assert judge(late[:14]) == judge(late) == Verdict(state="bad", code="watch_slow")
    assert judge(late[10:]) == Verdict(state="ok")  # slow from its beginning


def test_of_one_that_others_cant_be_compared_with_its_past_is_no_proof() -> None:
    idle = [sample(m, ttft=Histogram(), finished=0.0) for m in range(20)]
    for others in ([], [idle]):
        assert judge(slower(3.0), others) == Verdict(state="suspect", code="watch_slow")


def test_more_to_do_is_no_slowness() -> None:
    """Requests that queue, ten times as many of them, or prompts ten times as long."""
    late = slower(3.0)
    told = late[-1].counts
    assert told is not None
    queued = replace(late[-1], counts=replace(told, waiting=3))
    assert judge([*late[:-1], queued]) == Verdict(state="suspect", code="watch_busy")
    assert judge(first_tokens(5.0, 10, rate=300.0)) == Verdict(state="ok")
    assert judge(first_tokens(5.0, 10, read=10_000.0)) == Verdict(state="ok")


def first_tokens(
    by: float, begin: int, *, end: int = 20, rate: float = 30.0, read: float = 1000.0
) -> list[Sample]:
    """30 requests a minute of 1000 prompt tokens and 0.2 s; after minute `begin` `rate` of `read`
    tokens, and `by` seconds."""
    series, waited, count, tokens = [], 0.0, 0.0, 0.0
    for minute in range(end):
        ttft = Histogram(sum=waited, count=count)
        series.append(sample(minute, ttft=ttft, finished=count, read=tokens))
        many, long, seconds = (30.0, 1000.0, 0.2) if minute < begin else (rate, read, by)
        waited, count, tokens = waited + many * seconds, count + many, tokens + many * long
    return series


def test_first_tokens_far_later_than_the_others_for_minutes_are_bad() -> None:
    others = [first_tokens(0.2, 10), first_tokens(0.3, 10)]
    late = first_tokens(3.0, 10)
    assert judge(late[:11], others) == Verdict(state="ok")
    assert judge(late[:12], others) == Verdict(state="suspect", code="watch_behind")
    assert judge(late[:14], others) == Verdict(state="bad", code="watch_behind")
    assert judge([*late[:13], *first_tokens(0.2, 0)[13:14]], others) == Verdict(state="ok")
    assert [judge(one, [late]) for one in others] == [Verdict(state="ok")] * 2


def test_one_that_is_slow_from_its_beginning_is_behind_within_three_minutes() -> None:
    """As in a swap: the others have served for long."""
    late = [replace(one, at=one.at + 600) for one in first_tokens(3.0, 0, end=4)]
    others = [first_tokens(0.2, 10)]
    found = [judge(late[: number + 1], others) for number in range(4)]
    suspect = Verdict(state="suspect", code="watch_behind")
    assert found == [
        Verdict(state="ok"),
        suspect,
        suspect,
        Verdict(state="bad", code="watch_behind"),
    ]


def test_what_all_replicas_meet_is_load() -> None:
    """Eight times what it was, and one of them twice that of the other."""
    assert judge(first_tokens(6.0, 10), [first_tokens(3.0, 10)]) == Verdict(state="ok")


def test_an_empty_prefix_cache_is_no_slowness() -> None:
    """A new engine reads whole conversations, of which the others know nine tenths."""
    warm = [first_tokens(0.5, 0, read=1000.0)]
    assert judge(first_tokens(5.0, 0, read=1000.0), warm).state == "bad"
    assert judge(first_tokens(5.0, 0, read=10_000.0), warm) == Verdict(state="ok")


def test_first_tokens_of_a_few_requests_are_chance() -> None:
    others = [first_tokens(0.2, 10)]
    assert judge(first_tokens(9.0, 10, rate=9.0), others) == Verdict(state="ok")


def test_slow_tiny_completions_with_nothing_waiting() -> None:
    slow = [sample(minute, "slow") for minute in (10, 11, 12)]
    assert judge([*WELL, *slow[:2]]) == Verdict(state="suspect", code="watch_slow")
    assert judge([*WELL, *slow]) == Verdict(state="bad", code="watch_slow")
    queued = [sample(minute, "slow", waiting=9) for minute in (10, 11, 12)]
    assert judge([*WELL, *queued]) == Verdict(state="suspect", code="watch_busy")


def test_the_worst_finding_wins() -> None:
    series = [*slower(3.0), failed(20, **STILL), failed(21, **STILL)]
    assert judge(series) == Verdict(state="bad", code="watch_hang")


def test_a_sample_survives_json() -> None:
    told = counts(1, ttft=Histogram(sum=1.0, count=2.0, buckets={0.5: 1.0, float("inf"): 2.0}))
    for counted in (told, None):
        one = Sample(at=1.0, answered="ok", seconds=0.1, counts=counted)
        assert Sample.from_json(one.to_json()) == one
