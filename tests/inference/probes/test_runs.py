"""Runs of probes. A simulator stands where the edge is, a fake where the gateway's admin API is;
tests/journeys/test_probes.py has the real ones."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from inference import provisioning, smoke
from inference.engine import Engine
from inference.gateway import Gateway
from inference.models import (
    Alert,
    CatalogModel,
    Key,
    KeyEvent,
    ProbeResult,
    ProbeRun,
    Replica,
    Slot,
    Swap,
    Usage,
)
from inference.probes import calls, own_key, results, runs
from inference.probes.results import Verdict
from inference.probes.words import MEMBERS, OPERATORS
from inference.simulator import tokens
from inference.smoke.words import WORDS as SMOKE_WORDS
from tests.inference.fleet import rooms
from tests.inference.simulator.engines import PARSERS, RunningEngine, running

pytestmark = pytest.mark.django_db(transaction=True)
CLAIMS = ["tools", "reasoning", "vision"]


@pytest.fixture
def model() -> CatalogModel:
    return rooms.catalog_model("old-model", capabilities=CLAIMS, context_length=65_536)


@pytest.fixture
def slot(model: CatalogModel) -> Slot:
    return served(rooms.slot(model=model))


def served(slot: Slot) -> Slot:
    rooms.serving(slot, rooms.server(f"of-{slot.name}"))
    return slot


@pytest.fixture
def engine(settings: Settings) -> Iterator[RunningEngine]:
    names = ("--served-model-name", "nan", "old-model")
    with running(*names, "--max-model-len", "65536", *PARSERS) as found:
        settings.API_URL = found.url
        yield found


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "LIMITS", smoke.Limits(first=1, whole=3))
    monkeypatch.setattr(runs, "KEY_SECONDS", 0)


def make_all(slot: Slot) -> ProbeRun:
    """As both workers would, turn by turn."""
    (run,) = runs.ask(slots=[slot], cause=ProbeRun.Cause.ASKED)
    for _turn in range(40):
        runs.advance()
        provisioning.advance_due()
        run.refresh_from_db()
        if run.state not in ProbeRun.OPEN:
            return run
    raise AssertionError(f"still {run.state}")


def test_every_call_of_a_well_model_works(
    slot: Slot, engine: RunningEngine, client_of_fake: Gateway
) -> None:
    run = make_all(slot)
    assert (run.state, run.left, run.error_code) == ("done", [], "")
    assert list(run.results.filter(ok=False)) == []
    assert [r.call for r in run.results.all()] == [c.name for c in calls.calls_for(slot.model)]
    assert {c.name for c in calls.CALLS} - {r.call for r in run.results.all()} == {"embedding"}
    assert not Alert.objects.exists()


@pytest.mark.parametrize("context", [65_536, 131_072])
def test_the_long_prompt_comes_close_to_the_longest(
    slot: Slot, engine: RunningEngine, context: int
) -> None:
    """As the simulator counts tokens; others count more, so there is room left."""
    asked: list[str] = []

    class Noting(smoke.asking.Run):
        def chat(self, prompt: str, **more: Any) -> Any:
            asked.append(prompt)
            return super().chat("say hello", **more)

    about = smoke.Target(name="nan", capabilities=frozenset({"chat"}), context=context)
    with pytest.raises(smoke.asking.Failed):
        calls.long_context(Noting(engine=Engine(engine.url, "any"), target=about))
    size = len(tokens.split(asked[0]))
    assert 0.6 * context < size < 0.9 * context
    assert calls.LONG_PATIENCE.whole < runs.LEASE.total_seconds()


def test_the_key_lives_as_long_as_the_run_and_is_written_nowhere(
    slot: Slot, engine: RunningEngine, client_of_fake: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    value = own_key.value

    def watched(run: ProbeRun) -> str | None:
        found = value(run)
        seen.extend([found] if found else [])
        return found

    monkeypatch.setattr(own_key, "value", watched)
    run = make_all(slot)
    provisioning.advance_due()
    key = Key.objects.get()
    assert (key.state, key.holder_id, key.holder.member) == ("deleted", own_key.OWNER, None)
    assert (key.holder.own_rpm, key.holder.own_parallel) == (60, 2)
    secret = seen[0]
    assert secret.startswith("sk-")
    assert set(seen) == {secret}
    rows = [vars(row) for m in (ProbeRun, ProbeResult, Key, KeyEvent) for row in m.objects.all()]
    assert secret not in repr(rows)
    with pytest.raises(own_key.NoKey):
        value(run)


def test_a_failure_counts_when_it_happens_twice_and_is_told(
    slot: Slot, client_of_fake: Gateway, settings: Settings
) -> None:
    names = ("--served-model-name", "nan", "old-model", "--max-model-len", "65536", *PARSERS)
    with running(*names, SIM_FAULTS="lose-tool-calls") as engine:
        settings.API_URL = engine.url
        run = make_all(slot)
    failed = {result.call: result.code for result in run.results.filter(ok=False)}
    calls_of_tools = (
        "tools",
        "tools_parallel",
        "tools_stream",
        "messages_tools",
        "responses_tools",
    )
    assert failed == dict.fromkeys(calls_of_tools, "smoke_tool_call_lost")
    alert = Alert.objects.get(code="probe_failed", closed_at=None)
    assert (alert.slot, "tools (smoke_tool_call_lost)" in alert.detail) == (slot, True)
    badge = results.badge(["chat", "tools"], [slot])
    assert badge
    assert (badge.verdict, [str(state.reason) for state in badge.states]) == (
        Verdict.FAILS,
        ["", str(MEMBERS["smoke_tool_call_lost"])],
    )
    with running(*names) as engine:
        settings.API_URL = engine.url
        make_all(slot)
    assert not Alert.objects.filter(closed_at=None).exists()
    badge = results.badge(["chat", "tools"], [slot])
    assert badge
    assert badge.verdict == Verdict.WORKS


def test_one_bad_moment_is_no_failure(
    slot: Slot, engine: RunningEngine, client_of_fake: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    probe = runs._probe

    def stumbling(name: str, *rest: Any) -> smoke.Outcome:
        made.append(name)
        if made.count("stream") == 1 and name == "stream":
            return smoke.Outcome(ok=False, code="smoke_hang")
        return probe(name, *rest)

    monkeypatch.setattr(runs, "_probe", stumbling)
    run = make_all(slot)
    assert (made.count("stream"), made[-1]) == (2, "stream")
    assert list(run.results.filter(ok=False)) == []


def test_a_run_without_a_key_is_an_alert_and_says_nothing_of_the_model(slot: Slot) -> None:
    (run,) = runs.ask(slots=[slot], cause=ProbeRun.Cause.ASKED)
    runs.advance()
    ProbeRun.objects.update(started_at=timezone.now() - timedelta(minutes=10))
    runs.advance()
    run.refresh_from_db()
    assert (run.state, run.error_code) == ("failed", "probe_too_long")
    assert not ProbeResult.objects.exists()
    assert Alert.objects.get().code == "probe_run_failed"
    badge = results.badge(["chat"], [slot])
    assert badge
    assert badge.verdict == Verdict.NOT_CHECKED


def test_a_swap_in_the_middle_ends_the_run_without_a_verdict(
    slot: Slot, engine: RunningEngine, client_of_fake: Gateway
) -> None:
    (run,) = runs.ask(slots=[slot], cause=ProbeRun.Cause.ASKED)
    runs.advance()
    slot.model = rooms.catalog_model("new-model")
    slot.save()
    runs.advance()
    run.refresh_from_db()
    assert (run.state, run.error_code) == ("failed", "probe_model_changed")
    assert not Alert.objects.exists()


def test_one_run_at_a_time_and_one_for_a_slot(slot: Slot) -> None:
    other = served(rooms.slot(model=rooms.catalog_model("other"), name="other", number=2))
    first, second = runs.ask(slots=[slot, other], cause=ProbeRun.Cause.ASKED)
    assert runs.ask(slots=[slot], cause=ProbeRun.Cause.NIGHT) == [first]
    runs.advance()
    runs.advance()
    assert [r.state for r in ProbeRun.objects.order_by("pk")] == ["running", "asked"]
    ProbeRun.objects.filter(pk=first.pk).update(lease_until=timezone.now() + timedelta(seconds=9))
    assert runs.advance() is False
    assert ProbeRun.objects.get(pk=second.pk).state == "asked"


def test_a_worker_that_lost_its_claim_writes_nothing(slot: Slot, engine: RunningEngine) -> None:
    (run,) = runs.ask(slots=[slot], cause=ProbeRun.Cause.ASKED)
    run.lease_until = timezone.now()
    runs._write(run, left=[["chat", 1]])
    assert run.left == []
    assert len(ProbeRun.objects.get().left) > 1


MADRID = ZoneInfo("Europe/Madrid")


def moment(day: int, hour: int) -> datetime:
    return datetime(2026, 11, day, hour, 30, tzinfo=MADRID)


def serving_since(at: datetime) -> None:
    Replica.objects.update(state_since=at)
    Slot.objects.update(model_since=at - timedelta(minutes=3))  # when an admin put it in


def test_a_first_model_is_checked_a_few_minutes_after_it_began_to_serve(slot: Slot) -> None:
    began = moment(10, 9)
    serving_since(began)
    for minutes in (0, 4):
        runs.ask_due(began + timedelta(minutes=minutes))
    assert not ProbeRun.objects.exists()
    runs.ask_due(began + timedelta(minutes=5))
    run = ProbeRun.objects.get()
    assert (run.cause, run.model) == ("first", slot.model)
    ProbeRun.objects.update(state="failed", asked_at=began + timedelta(minutes=5))
    for at in (moment(10, 10), moment(11, 3)):
        runs.ask_due(at)
    assert ProbeRun.objects.count() == 1  # also if its calls could not be made
    runs.ask_due(moment(11, 4))
    newest = ProbeRun.objects.first()
    assert newest
    assert newest.cause == "night"


def test_what_counts_is_that_an_engine_serves_not_that_a_model_was_put_in(slot: Slot) -> None:
    """Loading takes long."""
    serving_since(moment(10, 9))
    Slot.objects.update(model_since=moment(10, 6))
    runs.ask_due(moment(10, 9) + timedelta(minutes=4))
    assert not ProbeRun.objects.exists()
    second = rooms.serving(slot, rooms.server("second"), 2)
    Replica.objects.filter(pk=second.pk).update(state_since=moment(10, 9) + timedelta(minutes=4))
    runs.ask_due(moment(10, 9) + timedelta(minutes=5))  # the first of them counts
    assert ProbeRun.objects.get().cause == "first"


def test_another_model_that_came_without_a_swap_is_a_first_one_too(slot: Slot) -> None:
    serving_since(moment(10, 9))
    before = rooms.catalog_model("before")
    ProbeRun.objects.create(slot=slot, model=before, cause="first", state="done")
    runs.ask_due(moment(10, 10))
    newest = ProbeRun.objects.first()
    assert newest
    assert (newest.cause, newest.model) == ("first", slot.model)


def test_runs_are_due_once_a_night_and_after_each_swap(slot: Slot, settings: Settings) -> None:
    settings.PROBES = True
    serving_since(moment(10, 3))
    new = rooms.catalog_model("new-model")

    def end_all(at: datetime) -> None:
        ProbeRun.objects.update(state="done", asked_at=at)

    runs.ask_due(moment(10, 5))
    assert ProbeRun.objects.get().cause == "first"
    end_all(moment(10, 5))
    for at in (moment(10, 6), moment(10, 23), moment(11, 3)):
        runs.ask_due(at)
    assert ProbeRun.objects.count() == 1
    runs.ask_due(moment(11, 4))
    assert ProbeRun.objects.count() == 2
    end_all(moment(11, 4))
    swap = Swap.objects.create(slot=slot, from_model=slot.model, to_model=new, state="running")
    runs.ask_due(moment(12, 5))
    assert ProbeRun.objects.count() == 2  # it would speak of two models
    slot.model = new
    slot.save()
    Replica.objects.update(model=new, goal_model=new)
    Swap.objects.filter(pk=swap.pk).update(state="done", finished_at=moment(12, 2))
    runs.ask_due(moment(12, 3))
    newest = ProbeRun.objects.first()
    assert newest
    assert (newest.cause, newest.swap, newest.model) == ("swap", swap, new)


def test_a_night_that_was_missed_is_made_up_for_at_the_next_start(slot: Slot) -> None:
    ProbeRun.objects.create(
        slot=slot, model=slot.model, cause="first", state="done", asked_at=moment(10, 9)
    )
    serving_since(moment(10, 9))
    for at in (moment(10, 9), moment(10, 23), moment(11, 3)):
        runs.ask_due(at)
    assert ProbeRun.objects.count() == 1
    Replica.objects.update(state_since=moment(11, 9))
    runs.ask_due(moment(11, 9))
    newest = ProbeRun.objects.first()
    assert newest
    assert newest.cause == "night"


AWAY = [{"goal": "off"}, {"state": "failed"}, {"state": "off", "goal": "off", "model": None}]


@pytest.mark.parametrize("values", AWAY)
def test_a_model_that_does_not_answer_is_not_probed(slot: Slot, values: dict[str, Any]) -> None:
    """Taken out or down: that is told elsewhere, and is no fault of its calls."""
    Replica.objects.update(**values)
    runs.ask_due(timezone.now())
    with pytest.raises(runs.NotAsked) as refusal:
        runs.ask_for_all()
    assert refusal.value.code == "probe_nothing_answers"
    assert not ProbeRun.objects.exists()


def test_a_model_that_is_taken_out_in_the_middle_gets_no_verdict(
    slot: Slot, engine: RunningEngine, client_of_fake: Gateway
) -> None:
    (run,) = runs.ask_for_all()
    runs.advance()
    Replica.objects.update(goal="off")
    runs.advance()
    run.refresh_from_db()
    assert (run.state, run.error_code) == ("failed", "probe_model_away")
    assert not Alert.objects.exists()
    assert not ProbeResult.objects.exists()


def test_nothing_is_due_where_probes_are_off(slot: Slot, settings: Settings) -> None:
    settings.PROBES = False
    runs.ask_due(timezone.now())
    assert not ProbeRun.objects.exists()


def test_probes_count_in_no_usage(slot: Slot, client_of_fake: Gateway) -> None:
    from inference.usage.pull import _rows

    runs.ask(slots=[slot], cause=ProbeRun.Cause.ASKED)
    runs.advance()
    provisioning.advance_due()
    key = Key.objects.get(state="active")
    rows = _rows(timezone.now().date(), ("requests",), {(key.token, "nan"): (7,)})
    assert (rows, Usage.objects.count()) == ([], 0)


def test_every_code_has_words() -> None:
    assert set(MEMBERS) <= {*SMOKE_WORDS, *OPERATORS}


def test_the_table_and_badges_cost_the_same_however_many_results(
    slot: Slot, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for name in ("chat", "stream", "tools"):
        ProbeResult.objects.create(slot=slot, model=slot.model, call=name, ok=True)
    with django_assert_num_queries(3):
        assert len(results.table().columns) == 1
    for number in range(4):
        older = rooms.catalog_model(f"model-{number}")
        ProbeResult.objects.create(slot=slot, model=older, call="chat", ok=True)
    with django_assert_num_queries(3):
        assert len(results.table().columns) == 5
    with django_assert_num_queries(1):
        badge = results.badge(["chat", "tools"], [slot])
    assert badge
    assert badge.verdict == Verdict.WORKS
    unclaimed = results.badge(["embedding"], [slot])
    assert unclaimed
    assert unclaimed.verdict == Verdict.NOT_OFFERED


def test_of_a_page_the_worst_is_told_and_each_call_keeps_its_own(slot: Slot) -> None:
    for name in ("chat", "stream", "tools"):
        ProbeResult.objects.create(slot=slot, model=slot.model, call=name, ok=name != "stream")
    needs = {
        "well": ["chat", "tools"],
        "unknown": ["chat", "vision"],
        "absent": ["chat", "embedding", "vision"],
        "broken": ["chat", "embedding", "stream", "vision"],
        "nothing": [],
    }
    found = results.badges(needs, [slot])
    assert {name: badge and badge.verdict.value for name, badge in found.items()} == {
        "well": "works",
        "unknown": "not_checked",
        "absent": "not_offered",
        "broken": "fails",
        "nothing": None,
    }
    broken = found["broken"]
    assert broken
    assert [(state.call.name, state.verdict.value) for state in broken.states] == [
        ("chat", "works"),
        ("embedding", "not_offered"),
        ("stream", "fails"),
        ("vision", "not_checked"),
    ]


def test_command_shows_what_was_found(slot: Slot, capsys: pytest.CaptureFixture[str]) -> None:
    ProbeResult.objects.create(
        slot=slot, model=slot.model, call="tools", ok=False, code="smoke_tool_call_lost"
    )
    call_command("probes", "show")
    out = capsys.readouterr().out
    assert "call=tools  ok=False  code=smoke_tool_call_lost" in out
