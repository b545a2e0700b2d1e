"""Long waits, in which nothing is wrong: an engine that loads for long within its limit, a server
that can't be reached for long. Members notice neither.

Shortened; `make test-long` (NAN_REAL_WAITS=1) waits as long as people's engines and networks do.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fleet import Fleet
from tests.gpu_server import MODELS, NAME, second_server
from tests.load import Load
from tests.pages.markup import words
from tests.visitor import Visitor
from tests.waiting import wait_until


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Seconds. `pause`: between two calls of a client."""

    loading: float
    away: float
    pause: float


SHORT = Waits(loading=40, away=75, pause=0.05)
"""Longer than the pass's lease (12), a server's silence (30), a drain and its memory's wait."""
REAL = Waits(loading=12 * 60, away=60 * 60, pause=1)
WAITS = REAL if os.environ.get("NAN_REAL_WAITS") == "1" else SHORT

pytestmark = pytest.mark.timeout(300 + WAITS.loading + WAITS.away)


@pytest.fixture
def fleet(_fleet: Fleet) -> Fleet:
    """Any model is good to begin with."""
    _fleet.clear()
    return _fleet


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """For whoever has waited an hour for it."""

    def write(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f" {text}\n")

    return write


def opened(fleet: Fleet) -> list[str]:
    """Alerts, closed ones too."""
    return sorted(fleet.ask("list(Alert.objects.values_list('code', flat=True))"))


def test_an_engine_that_loads_long_within_its_limit_is_waited_for(
    fleet: Fleet, load_key: str, say: Callable[[str], None]
) -> None:
    """S15: no step that looks at it takes it for lost, and the others' deadlines don't hold."""
    new, before = fleet.other_model(), opened(fleet)
    with (
        fleet.allowed_to_load(new, seconds=int(WAITS.loading) + 30),
        fleet.faults({new: {"load_seconds": WAITS.loading}}),
        Load(fleet.stack.api, load_key, pause=WAITS.pause) as load,
    ):
        pk = fleet.plan(new, drain_seconds=10)
        fleet.until_step(pk, "starting")
        fleet.until_step(pk, "checking", seconds=WAITS.loading + 60)
        with fleet.faults({}):  # the other one loads as it does otherwise
            swap = fleet.until(pk, "done", seconds=120)
    assert loaded(swap) >= WAITS.loading
    assert (load.bad, fleet.starts(new), opened(fleet)) == ([], 2, before)
    say(f"loaded for {loaded(swap):.0f} s, {load.summary()}")


def loaded(swap: dict[str, Any]) -> float:
    """Seconds from the first engine's start to its check."""
    at = {what: when for what, _, _, when in reversed(swap["events"])}
    return float(at["checking"] - at["starting"])


def test_a_server_that_is_away_for_long_holds_up_only_itself(
    fleet: Fleet, load_key: str, staff: Visitor, say: Callable[[str], None]
) -> None:
    """The page says since when; another server is swapped there and back meanwhile; it goes on
    when the server is back."""
    new = fleet.other_model()
    with (
        second_server(fleet),
        Load(fleet.stack.api, load_key, pause=WAITS.pause) as load,
        Load(fleet.stack.api, load_key, pause=WAITS.pause, model=NAME) as other,
    ):
        pk = fleet.plan(new)
        fleet.until_step(pk, "draining")
        with fleet.stack.down("worker-gpu"):
            wait_until(
                lambda: "server_silent" in fleet.alerts(), seconds=60, what="the silence noticed"
            )
            since = must_be_told(fleet, staff, pk)
            fleet.until(fleet.plan(MODELS[1], slot=NAME), "done", seconds=90)
            wait_until(lambda: silence(fleet)[1] > WAITS.away, seconds=WAITS.away + 30, every=1)
            fleet.until(fleet.plan(MODELS[0], slot=NAME), "done", seconds=90)
            assert must_be_told(fleet, staff, pk) == since
            assert fleet.swap(pk)["state"] == "running"
            away = silence(fleet)[1]
        fleet.until(pk, "done", seconds=120)
    assert (load.bad, other.bad, fleet.starts(new)) == ([], [], 2)
    wait_until(lambda: "server_silent" not in fleet.alerts(), seconds=30, what="the alert's end")
    say(f"away for {away:.0f} s, {load.summary()}, of the other server {other.summary()}")


def must_be_told(fleet: Fleet, staff: Visitor, swap: int) -> str:
    """Since when, as the swap's page and the servers' say it."""
    since, seconds = silence(fleet)
    ago = f"{seconds // 3600:.0f} h" if seconds >= 3600 else f"{seconds // 60:.0f} min"
    page = words(staff.get(f"/staff/swaps/{swap}/"))
    assert f"local has not reported since {since}" in page
    if seconds % 60 < 50:  # the page was made a moment later
        assert f"since {since} ({ago} ago)" in page or seconds < 60
    assert f"silent since {since}" in words(staff.get("/staff/servers/"))
    return since


def silence(fleet: Fleet) -> tuple[str, float]:
    """When the stack's own server was heard of last, as an English page has it; seconds since."""
    since, seconds = fleet.do("""
from django.template.defaultfilters import date
from django.utils import timezone, translation
server = Server.objects.get(name="local")
with translation.override("en"):
    since = date(timezone.localtime(server.reported_at), "SHORT_DATETIME_FORMAT")
result = [since, (timezone.now() - server.reported_at).total_seconds()]""")
    return str(since), float(seconds)
