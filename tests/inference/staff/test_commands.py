"""The same as the pages do, by command."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from inference.models import CatalogModel, FleetEvent, Replica, Server, Slot, Swap
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.test_catalogue import GOOD

pytestmark = pytest.mark.django_db
Run = Callable[..., Any]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str) -> Any:
        call_command(*words, "--json")
        return json.loads(capsys.readouterr().out)

    return command


def test_servers(run: Run, admin: User) -> None:
    rows.small_fleet(2)
    assert [(row["name"], row["gpus"]) for row in run("servers", "list")] == [("gpu-1", 2)]
    assert run("servers", "show", "gpu-1")[0]["report"]["disk_free_mib"] == 812_345
    assert run("servers", "add", "gpu-1", "--seats", "40")[0]["seats"] == 40
    invited = run("servers", "invite", "gpu-2", "--seats", "10", "--as", admin.email)[0]
    assert len(invited["token"]) > 30
    assert FleetEvent.objects.get(what="invited").actor == admin
    with pytest.raises(CommandError, match=r"a slot would be left with no replica.*--last"):
        run("servers", "out", "gpu-1")
    out = run("servers", "out", "gpu-1", "--drain-minutes", "1", "--last")[0]
    assert (out["active"], set(Replica.objects.values_list("goal", "drain_seconds"))) == (
        False,
        {("off", 60)},
    )
    assert run("servers", "back", "gpu-1")[0]["active"] is True
    with pytest.raises(CommandError, match=r"Replicas stand on this server.*Nothing was changed"):
        run("servers", "delete", "gpu-1")
    assert run("servers", "delete", "gpu-2", "--as", admin.email)[0]["name"] == "gpu-2"
    assert FleetEvent.objects.get(what="server_deleted").actor == admin
    assert [row["name"] for row in run("servers", "list")] == ["gpu-1"]
    with pytest.raises(CommandError, match=r"There is no server nowhere"):
        run("servers", "out", "nowhere")
    with pytest.raises(CommandError, match="already"):
        run("servers", "invite", "gpu-1")
    with pytest.raises(CommandError, match="not an admin"):
        run("servers", "back", "gpu-1", "--as", "nobody@example.org")


def test_models(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    said = {**GOOD, "config": rows.CONFIG, "flags": {"seed": 1}, "environment": {}}
    file.write_text(json.dumps(said))
    assert run("models", "add", str(file))[0]["name"] == "birch-27b"
    shown = run("models", "show", "birch-27b")
    file.write_text(json.dumps(shown))
    run("models", "add", str(file))
    assert run("models", "show", "birch-27b") == shown
    assert run("models", "withdraw", "birch-27b")[0]["offered"] is False
    assert run("models", "offer", "birch-27b")[0]["offered"] is True
    file.write_text(json.dumps({**said, "flags": {"host": "0.0.0.0"}}))
    with pytest.raises(CommandError, match=r"flags: host is not a flag.*\nNothing was changed"):
        run("models", "add", str(file))
    file.write_text(json.dumps({**said, "flag": {}}))
    with pytest.raises(CommandError, match="Unknown: flag"):
        run("models", "add", str(file))
    file.write_text("{")
    with pytest.raises(CommandError, match="is not JSON"):
        run("models", "add", str(file))
    for text in ('{"name": NaN}', "[" * 60_000, '{"title": "\\ud800"}'):
        file.write_text(text)
        with pytest.raises(CommandError, match="is not JSON that can be used"):
            run("models", "add", str(file))
    rows.slot("nan")
    file.write_text(json.dumps({**said, "name": "nan"}))
    with pytest.raises(CommandError, match="A slot answers to this name already"):
        run("models", "add", str(file))
    with pytest.raises(CommandError, match="Members call a model by this name"):
        run("slots", "add", "birch-27b", "--title", "Birch")
    assert CatalogModel.objects.get().flags == {"seed": 1}


def test_slots_and_replicas(run: Run, admin: User) -> None:
    rows.server("gpu-1")
    rows.catalogue_model("alder")
    assert run("slots", "add", "nan", "--title", "Chat")[0]["model"] is None
    assert Slot.objects.get().number == 1
    with pytest.raises(CommandError, match="Another slot has this name"):
        run("slots", "add", "nan", "--title", "Chat")
    made = run("replicas", "add", "nan", "gpu-1", "--port", "8101", "--gpus", "0")[0]
    assert (made["place"], made["goal"]) == ("gpu-1:8101", "off")
    with pytest.raises(CommandError, match=r"The slot has no model yet.* Nothing was changed"):
        run("replicas", "back", "gpu-1:8101")
    back = run("replicas", "back", "gpu-1:8101", "--model", "alder", "--as", admin.email)[0]
    assert back["goal"] == "serve"
    assert run("slots", "list")[0]["model"] == "alder"
    with pytest.raises(CommandError, match="not down"):
        run("replicas", "retry", str(made["id"]))
    with pytest.raises(CommandError, match=r"no other replica of the slot.*--last"):
        run("replicas", "out", "gpu-1:8101")
    assert run("replicas", "out", "gpu-1:8101", "--last")[0]["goal"] == "off"
    assert run("replicas", "remove", "gpu-1:8101")[0]["id"] == made["id"]
    assert run("replicas", "list") == []
    for wrong in ("gpu-1:8101", "999", "somewhere"):
        with pytest.raises(CommandError, match="replica"):
            run("replicas", "out", wrong)
    assert Server.objects.get().replicas.count() == 0


def test_swaps(run: Run, admin: User, other_admin: User, settings: Settings) -> None:
    settings.SWAP_SECOND_ADMIN = True
    rows.small_fleet(2)
    as_one, as_other = ("--as", admin.email), ("--as", other_admin.email)
    day = timezone.localdate() + timedelta(days=300)
    later = ("--start-at", f"{day}T07:30")
    planned = run("swaps", "plan", "nan", "birch", "--reason", "Vote", *later, *as_one)[0]
    swap = Swap.objects.get()
    assert (planned["state"], swap.at_deadline, swap.drain_seconds) == ("planned", "abort", 900)
    number = str(swap.pk)
    with pytest.raises(CommandError, match="Somebody else has to approve"):
        run("swaps", "approve", number, *as_one)
    assert run("swaps", "approve", number, *as_other)[0]["state"] == "approved"
    started = run("swaps", "start", number, *as_other)[0]
    assert started["start_at"] < str(day)
    with pytest.raises(CommandError, match="changed meanwhile"):
        run("swaps", "pause", number, *as_other)
    assert run("swaps", "cancel", number, *as_other)[0]["state"] == "cancelled"
    again = run("swaps", "retry", number, *as_other)[0]
    assert [row["id"] for row in run("swaps", "list")] == [again["id"], swap.pk]
    shown = run("swaps", "show", number)[0]
    assert [line.split(" ", 2)[2] for line in shown["events"]] == [
        "planned",
        "approved",
        "told to start now",
        "cancelled",
    ]
    with pytest.raises(CommandError, match="There is no swap 999999"):
        run("swaps", "show", "999999")
    with pytest.raises(CommandError, match="A swap starts within a year from now"):
        run("swaps", "plan", "nan", "birch", "--start-at", "9999-12-31T23:59", *as_one)
    with pytest.raises(CommandError, match="is no time"):
        run("swaps", "plan", "nan", "birch", "--start-at", "soon", *as_one)
    for twice_or_never in ("2027-03-28T02:30", "2026-10-25T02:30"):
        with pytest.raises(CommandError, match="is not one moment in Europe/Madrid"):
            run("swaps", "plan", "nan", "birch", "--start-at", twice_or_never, *as_one)


def test_one_admin_starts_at_once_where_that_is_set(
    run: Run, admin: User, settings: Settings
) -> None:
    settings.SWAP_SECOND_ADMIN = False
    slot, _replicas, new = rows.small_fleet(1)
    swap = rows.swap(slot, new, admin)
    assert run("swaps", "start", str(swap.pk), "--as", admin.email)[0]["state"] == "approved"


def test_follow_tells_what_happened_and_how_it_ended(
    admin: User, capsys: pytest.CaptureFixture[str]
) -> None:
    slot, replicas, new = rows.small_fleet(1)
    swap = rows.swap(slot, new, admin, state="failed", error_code="kv_cache_too_small")
    rows.steps(swap, replicas[0], ["draining", "stopping"], detail="kv_cache_too_small")
    with pytest.raises(CommandError, match=r"failed\. What the weights leave"):
        call_command("swaps", "show", str(swap.pk), "--follow")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == [
        "planned",
        "gpu-1:8101: draining (alder)",
        "gpu-1:8101: stopping (alder): "
        "What the weights leave of the memory does not hold one full context.",
    ]
