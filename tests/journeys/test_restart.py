"""`make stop` and `make run` are meant: nobody is alerted, and no minute counts as an outage."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.stack import Stack
from tests.waiting import wait_until

TWO_SAMPLES = 100
LOOK = """
import json
from inference.models import Alert, ApiSample, Incident, SlotSample
from django.db.models import Sum
rows = SlotSample.objects.all(), ApiSample.objects.all()
print(json.dumps({
    "alerts": list(Alert.objects.values_list("code", flat=True)),
    "incidents": Incident.objects.count(),
    "samples": [table.count() for table in rows],
    "down": [table.aggregate(n=Sum("down_seconds"))["n"] for table in rows],
}))
"""


@pytest.fixture
def mine(stack: Stack) -> Iterator[Stack]:
    """One beside the others' stack, which can't be stopped for a test."""
    own = Stack(stack.state_dir.with_name(f"{stack.state_dir.name}-again"), extra=stack.extra)
    with own.for_once():
        yield own


def seen(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.python(LOOK))
    return found


def sampled(stack: Stack, more_than: list[int]) -> dict[str, Any] | None:
    found = seen(stack)
    grown = all(now > before for now, before in zip(found["samples"], more_than, strict=True))
    return found if grown else None


def test_a_stop_and_a_start_of_everything_is_no_outage(mine: Stack) -> None:
    first = wait_until(lambda: sampled(mine, [0, 0]), seconds=TWO_SAMPLES, what="the first samples")
    for _time in range(2):  # what an engine left on its GPU would be too much the second time
        mine.stop()
        mine.start()
    after = wait_until(
        lambda: sampled(mine, first["samples"]), seconds=TWO_SAMPLES, what="samples after it"
    )
    assert (after["alerts"], after["incidents"], after["down"]) == ([], 0, [0, 0])
    page = httpx.get(f"{mine.site}/status.json", timeout=20).json()
    assert {slot["state"] for slot in page["slots"]} == {"up"}
    assert page["api"]["uptime"] == 1
