"""The status page answers while other things do not: Redis, the database, the disk."""

import json
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from inference.models import Incident, Slot
from inference.status import pages, shelf
from inference.status.facts import gather
from tests.inference.status.conftest import stood
from tests.nan.test_outage import ask_without_database
from tests.pages.markup import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kept")]


def test_without_redis(read: Callable[..., Any], slot: Slot, monkeypatch: Any) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise AssertionError("the cache was asked")

    for name in ("get", "set", "add", "get_many"):
        monkeypatch.setattr(type(cache._connections[cache._alias]), name, away, raising=False)
    assert read("/status/")


def test_a_database_that_goes_away_leaves_the_last_page(
    client: Client, kept: shelf.Shelf, slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    stood(slot, "u")
    client.get("/status/")

    def away(now: datetime) -> None:
        raise OperationalError("couldn't get a connection")

    monkeypatch.setattr(shelf, "gather", away)
    kept.forget()
    later = timezone.now() + timedelta(minutes=7)
    monkeypatch.setattr(pages.timezone, "now", lambda: later)
    answer = client.get("/status/", headers={"accept-language": "en"})
    assert answer.status_code == 200
    assert "known 7 minutes ago" in words(answer.content.decode())
    assert answer["Cache-Control"] == "no-store"
    assert client.get("/status.json").json()["current"] is False
    assert client.get("/status.atom").status_code == 200


def test_nobody_waits_for_a_database_that_is_away(
    slot: Slot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked aside, by one at a time; until it has answered, what is known is shown."""
    asked: list[Callable[[], None]] = []
    kept = shelf.Shelf(tmp_path / "status.json", aside=lambda run, seconds: asked.append(run))
    assert kept.look().current
    began = time.monotonic()
    for _request in range(3):
        kept.forget()
        assert kept.look().current
    assert time.monotonic() - began < shelf.PATIENCE_SECONDS / 2
    (ask,) = asked

    def away(now: datetime) -> None:
        raise OperationalError("couldn't get a connection")

    monkeypatch.setattr(shelf, "gather", away)
    ask()
    assert not kept.look().current
    monkeypatch.setattr(shelf, "gather", gather)
    kept.forget()
    assert not kept.look().current
    asked[-1]()
    assert kept.look().current


def test_how_long_the_one_request_waits_that_looks(slot: Slot, tmp_path: Path) -> None:
    """Hardly, while there is something of some seconds ago; longer if it is older or untrue."""
    waits: list[float] = []

    def at_once(run: Callable[[], None], seconds: float) -> None:
        waits.append(seconds)
        run()

    kept = shelf.Shelf(tmp_path / "status.json", aside=at_once)
    kept.look()
    for age in (shelf.FRESH_SECONDS + 1, shelf.OLD_SECONDS + 1):
        kept._looked = kept._known = time.monotonic() - age
        kept.look()
    kept.forget()
    kept.look()
    assert waits == [shelf.BRIEF_SECONDS, shelf.PATIENCE_SECONDS, shelf.PATIENCE_SECONDS]
    assert shelf.BRIEF_SECONDS < 0.05


def test_what_nobody_could_renew_is_not_called_current(
    slot: Slot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as while the database accepts a connection and then says nothing."""
    asked: list[Callable[[], None]] = []
    kept = shelf.Shelf(tmp_path / "status.json", aside=lambda run, seconds: asked.append(run))
    assert kept.look().current
    kept.forget()
    kept.look()
    later = time.monotonic() + shelf.OLD_SECONDS + 1
    monkeypatch.setattr(shelf.time, "monotonic", lambda: later)
    assert not kept.look().current
    asked[0]()
    assert kept.look().current


def _wait(event: threading.Event) -> None:
    event.wait(10)


def test_who_asks_meanwhile_waits_for_the_rest_of_that_time(slot: Slot, tmp_path: Path) -> None:
    """After a quiet time, of which nobody knows whether the facts still hold."""
    asked: list[Callable[[], None]] = []
    kept = shelf.Shelf(tmp_path / "status.json", aside=lambda run, seconds: asked.append(run))
    kept.look()
    kept._known = kept._looked = time.monotonic() - shelf.OLD_SECONDS - 1
    assert not kept.look().current
    took = []
    for _request in range(3):
        began = time.monotonic()
        assert not kept.look().current
        took.append(time.monotonic() - began)
    assert 0.5 < took[0] <= shelf.PATIENCE_SECONDS + 0.3
    assert max(took[1:]) < 0.3
    assert len(asked) == 1


def test_aside_is_waited_for_a_little() -> None:
    done, go_on = threading.Event(), threading.Event()
    shelf.aside(done.set, 5)
    assert done.is_set()
    began = time.monotonic()
    shelf.aside(lambda: _wait(go_on), 0.2)
    assert 0.2 <= time.monotonic() - began < 5
    go_on.set()


def test_a_process_that_starts_without_a_database_shows_what_is_on_disk(
    client: Client, slot: Slot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own, with nothing at the database's address, and a session besides."""
    stood(slot, "u")
    client.get("/status/")
    monkeypatch.setenv("NAN_STATE_DIR", str(tmp_path))
    head, body = ask_without_database("/status/")
    assert head == "200 None no-store text/html; charset=utf-8"
    assert "acme/alder@" in body
    head, body = ask_without_database("/status.json")
    assert json.loads(body)["current"] is False
    (tmp_path / "status.json").write_text("{}")
    head, _ = ask_without_database("/status/")
    assert head == "503 10 no-store text/html; charset=utf-8"


def test_a_disk_that_refuses_breaks_nothing(
    client: Client, slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "shelf", shelf.Shelf(Path("/proc/none/status.json")))
    assert client.get("/status/").status_code == 200


def test_what_comes_back_from_disk_is_the_same(slot: Slot, incident: Incident) -> None:
    stood(slot, "ud")
    facts = gather(timezone.now().replace(microsecond=0))
    again = shelf.from_json(shelf.as_json(facts))
    assert shelf.as_json(again) == shelf.as_json(facts)
    assert again["slots"][0]["days"] == facts["slots"][0]["days"]


def test_two_processes_show_the_same_and_one_of_them_asks(
    slot: Slot, tmp_path: Path, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """Each reader may reach another one with her next click."""
    one, other = (
        shelf.Shelf(tmp_path / "status.json", aside=lambda run, seconds: run()) for _ in range(2)
    )
    first = one.look()
    other.look()
    stood(slot, "u")
    one.forget()
    renewed = one.look()
    assert renewed.made_at > first.made_at
    with django_assert_num_queries(0):
        kept = other.look()
    assert kept.current
    assert shelf.as_json(kept.facts) == shelf.as_json(renewed.facts)
    assert kept.facts["slots"][0]["state"] == "up"


def test_what_the_other_process_saw_last_is_shown_by_both_without_a_database(
    slot: Slot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (
        shelf.Shelf(tmp_path / "status.json", aside=lambda run, seconds: run()) for _ in range(2)
    )
    other.look()
    one.forget()
    later = one.look()

    def away(now: datetime) -> None:
        raise OperationalError("couldn't get a connection")

    monkeypatch.setattr(shelf, "gather", away)
    for process in (one, other):
        process.forget()
        kept = process.look()
        assert not kept.current
        assert shelf.as_json(kept.facts) == shelf.as_json(later.facts)


def test_a_file_that_is_broken_off_or_of_another_version_is_left_alone(
    slot: Slot, tmp_path: Path
) -> None:
    file = tmp_path / "status.json"
    process = shelf.Shelf(file, aside=lambda run, seconds: run())
    before = process.look()
    for text in ("{", "{}", "[]", '{"slots": [], "made_at": "2099-01-01T00:00:00Z"}'):
        file.write_text(text)
        assert process.look().facts == before.facts
