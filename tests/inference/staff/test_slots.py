"""Slots and replicas: what is shown, what may be done to one."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inference.models import FleetEvent, PublicName, Replica, Slot
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import html
from tests.people import signed_in

pytestmark = pytest.mark.django_db


def test_slots_with_their_names_and_replicas(admin: User) -> None:
    slot, replicas, new = rows.small_fleet(2)
    PublicName.objects.create(
        name="old", slot=slot, retire_at=timezone.now() + timedelta(days=3), model=slot.model
    )
    gone = timezone.now()
    PublicName.objects.create(name="ancient", slot=slot, retired_at=gone, model=slot.model)
    swap = rows.swap(slot, new, admin)
    page = html(signed_in(admin).get("/staff/slots/"))
    assert ("<code>nan</code>" in page, "<code>ancient</code>" in page) == (True, False)
    assert "for good" in page
    assert page.count("retires on") == 1
    assert (
        page.split(f'<a href="/staff/swaps/{swap.pk}/">')[1]
        .lstrip()
        .startswith("Swap to Birch 27B")
    )
    assert page.count(f"/staff/replicas/{replicas[0].pk}/out/") == 1


@pytest.mark.parametrize(
    ("state", "goal", "offered"),
    [
        ("serving", "serve", {"out"}),
        ("failed", "serve", {"out", "retry"}),
        ("off", "off", {"in", "remove"}),
        ("draining", "off", {"in"}),
    ],
)
def test_what_is_offered(state: str, goal: str, offered: set[str], admin: User) -> None:
    slot, _replicas, _new = rows.small_fleet(1)
    one = rows.replica(slot, rows.server("gpu-2"), state=state, goal=goal, goal_model=slot.model)
    for path in (f"/staff/replicas/{one.pk}/", "/staff/slots/"):
        page = html(signed_in(admin).get(path))
        acts = {"in", "out", "retry", "remove"}
        assert {act for act in acts if f"/staff/replicas/{one.pk}/{act}/" in page} == offered


def test_take_out_and_put_in_again(admin: User) -> None:
    slot, replicas, _new = rows.small_fleet(2)
    client, one = signed_in(admin), replicas[0]
    path = f"/staff/replicas/{one.pk}/"
    assert "One other replica of the slot goes on serving." in html(client.get(f"{path}out/"))
    assert client.post(f"{path}out/", {"drain_minutes": "61"}).status_code == 422
    client.post(f"{path}out/", {"drain_minutes": "2", "at_deadline": "cut"})
    one.refresh_from_db()
    assert (one.goal, one.drain_seconds, one.at_deadline) == ("off", 120, "cut")
    client.post(f"{path}in/")
    one.refresh_from_db()
    assert (one.goal, one.goal_model) == ("serve", slot.model)
    found = FleetEvent.objects.filter(replica=one).values_list("what", "actor")
    assert list(found) == [("taken_out", admin.pk), ("put_in", admin.pk)]


def test_the_last_one_is_taken_out_with_a_warning(admin: User) -> None:
    _slot, replicas, _new = rows.small_fleet(1)
    page = html(signed_in(admin).get(f"/staff/replicas/{replicas[0].pk}/out/"))
    assert "members get errors until one does" in page


def test_a_new_slot_gets_its_first_model_from_its_first_replica(admin: User) -> None:
    client, model = signed_in(admin), rows.catalogue_model("alder")
    rows.catalogue_model("vectors", kind="embedding", capabilities=[])
    data: dict[str, Any] = {"name": "nan", "title": "Chat", "kind": "chat", "number": "1"}
    data |= {"least_concurrent": "0", "least_context": "0"}
    assert client.post("/staff/slots/add/", {**data, "number": "9"}).status_code == 422
    for _ in range(2):  # a button pressed twice
        assert client.post("/staff/slots/add/", data).status_code == 302
    slot = Slot.objects.get()
    one = rows.replica(slot, rows.server("gpu-1"), state="off")
    path = f"/staff/replicas/{one.pk}/"
    page = html(client.get(path))
    assert ("Alder</option>" in page, "Vectors</option>" in page) == (True, False)
    assert "Choose the model" in html(client.post(f"{path}in/", follow=True))
    client.post(f"{path}in/", {"model": model.pk})
    one.refresh_from_db()
    slot.refresh_from_db()
    assert (one.goal_model, slot.model) == (model, model)


def test_retry_and_remove(admin: User) -> None:
    slot, _replicas, _new = rows.small_fleet(1)
    on = rows.server("gpu-2")
    one = rows.replica(slot, on, state="failed", error_code="kv_cache_too_small")
    client, path = signed_in(admin), f"/staff/replicas/{one.pk}/"
    assert "does not hold one full context" in html(client.get(path))
    page = html(client.post(f"{path}remove/", follow=True))
    assert "Take the replica out first" in page
    client.post(f"{path}retry/")
    one.refresh_from_db()
    assert (one.error_code, one.retry_at is not None) == ("", True)
    Replica.objects.filter(pk=one.pk).update(state="off", goal="off")
    assert client.post(f"{path}remove/")["Location"] == "/staff/servers/gpu-2/"
    assert not Replica.objects.filter(pk=one.pk).exists()
    assert f"removed, {admin.call_name}. {one}" in html(client.get("/staff/servers/gpu-2/"))


def test_a_loading_replica_shows_progress_and_log(admin: User) -> None:
    slot, _replicas, _new = rows.small_fleet(1)
    on = rows.server("gpu-2")
    one = rows.replica(slot, on, state="starting", instance="r9-g1")
    rows.tell(on, "r9-g1", log=["<script>alert(1)</script>"])
    page = html(signed_in(admin).get(f"/staff/replicas/{one.pk}/"))
    assert "loading weights · 41 %" in page
    assert 'value="41"' in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_slot_does_not_get_the_name_of_a_model(admin: User) -> None:
    slot = rows.slot("nan", rows.catalogue_model("alder"))
    PublicName.objects.create(name="ancient", slot=slot, model=slot.model)
    client = signed_in(admin)
    data = {"title": "x", "kind": "chat", "number": "2", "least_concurrent": 0, "least_context": 0}
    said = "Members call a model by this name"
    for name in ("alder", "ancient"):
        answer = client.post("/staff/slots/add/", {**data, "name": name})
        assert (answer.status_code, said in html(answer)) == (422, True)
    page = html(client.post("/staff/slots/add/", {**data, "name": "nan", "number": "1"}))
    assert "Another slot has this name." in page
    assert "Another slot has this place in the pool." in page
    assert 'name="number" value="2"' in html(client.get("/staff/slots/add/"))
    assert client.post("/staff/slots/add/", {**data, "name": "birch"}).status_code == 302


def test_what_a_removed_replica_did_keeps_its_words(admin: User) -> None:
    slot, _replicas, _new = rows.small_fleet(1)
    one = rows.replica(slot, rows.server("gpu-2"), state="off")
    FleetEvent.objects.create(replica=one, server=one.server, what="joining")
    signed_in(admin).post(f"/staff/replicas/{one.pk}/remove/")
    assert "joining the pool" in html(signed_in(admin).get("/staff/servers/gpu-2/"))
