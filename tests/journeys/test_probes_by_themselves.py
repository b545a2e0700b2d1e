"""Probes that nobody asks for: after a swap and each night, by the beat of a stack that makes them.

A night is brought near by making what was checked older; everything else happens by itself.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.conftest import HURRIED, STACKS
from tests.fleet import Fleet
from tests.pages.markup import words
from tests.services import own
from tests.stack import Stack
from tests.visitor import Visitor, admin
from tests.waiting import wait_until

A_RUN = 150
"""Seconds that a run may take here, from being due to its end."""
LOST = "tool calls get lost or come broken"
LAST = """
run = ProbeRun.objects.filter(slot__name="nan").order_by("pk").last()
result = run and {"pk": run.pk, "cause": run.cause, "state": run.state, "model": run.model.name,
                  "failed": sorted(run.results.filter(ok=False).values_list("call", flat=True))}"""
OLDER = """
from datetime import timedelta
from django.db.models import F
ago = timedelta(days=1)
ProbeRun.objects.update(asked_at=F("asked_at") - ago)
Slot.objects.update(model_since=F("model_since") - ago)
Swap.objects.update(finished_at=F("finished_at") - ago)
result = None"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """One of its own: the others' makes no probes, whose calls would be among those counted."""
    folder = own(STACKS)
    mine = Stack(
        folder.with_name(f"{folder.name}-probes"), extra={**HURRIED, "PROBES": "1"}, patience=300
    )
    with mine.for_once():
        yield mine


@pytest.fixture(scope="module")
def fleet(stack: Stack) -> Iterator[Fleet]:
    found = Fleet(stack)
    found.settle(seconds=120)
    yield found
    found.close()


def ended(fleet: Fleet, cause: str, after: int = 0) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        run: dict[str, Any] | None = fleet.do(LAST)
        over = run and run["pk"] > after and run["state"] in ("done", "failed")
        return run if over and run["cause"] == cause else None

    return wait_until(look, seconds=A_RUN, what=f"a run of probes ({cause}) to end", every=1)


def misbehave(fleet: Fleet, faults: list[str]) -> None:
    for replica in fleet.replicas():
        address = f"http://127.0.0.1:{replica['port']}/_sim/faults"
        assert httpx.post(address, json=faults, timeout=5).status_code == 200


def test_from_a_swap_to_a_night_that_fails_and_one_that_is_well(stack: Stack, fleet: Fleet) -> None:
    new = fleet.other_model(has=["tools", "reasoning"])
    title = fleet.ask(f"CatalogModel.objects.get(name={new!r}).title")
    boss = admin(stack)
    reader = Visitor(stack).become_member()

    def said(path: str) -> str:
        return words(reader.get(path))

    fleet.until(fleet.plan(new), "done", seconds=150)
    run = ended(fleet, "swap")
    assert (run["state"], run["model"], run["failed"]) == ("done", new, [])
    table = said("/docs/examples/works/")
    assert f"{title} runs now" in table
    assert LOST not in table
    assert "calls answered" in said("/docs/examples/")

    misbehave(fleet, ["lose-tool-calls"])
    fleet.do(OLDER)
    run = ended(fleet, "night", after=run["pk"])
    assert (run["state"], run["model"]) == ("done", new)
    assert {"tools", "tools_stream"} <= set(run["failed"])
    assert "probe_failed" in fleet.alerts()
    assert new in stack.mail(boss.email, about="A tool call: tool calls get lost")
    assert f"Part of this does not work with {title} at present" in said("/docs/examples/opencode/")
    assert LOST in said("/docs/examples/works/")

    misbehave(fleet, [])
    fleet.do(OLDER)
    run = ended(fleet, "night", after=run["pk"])
    assert (run["state"], run["failed"]) == ("done", [])
    assert "probe_failed" not in fleet.alerts()
    assert "Part of this does not work" not in said("/docs/examples/opencode/")
    assert LOST not in said("/docs/examples/works/")


def test_the_beat_asks_for_them_every_fifteen_seconds_and_for_each_night_at_four(
    stack: Stack,
) -> None:
    """What is in its schedule, and that the task by that name is one that the workers have."""
    found = stack.python(
        "from nan.celery import app; from django.conf import settings\n"
        "app.loader.import_default_modules()\n"
        "entry = app.conf.beat_schedule['probes']\n"
        "print(entry['schedule'], entry['task'], entry['task'] in app.tasks,"
        " settings.PROBES_HOUR, settings.TIME_ZONE)"
    )
    assert found.split() == ["15", "inference.tasks.make_probes", "True", "4", "Europe/Madrid"]
