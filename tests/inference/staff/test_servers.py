"""Servers as admins see and change them, and how a new one joins."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from inference.models import FleetEvent, Replica, Server
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import html
from tests.inference.staff.test_replicas import said
from tests.people import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What GPU servers would be told; the broker is not part of these tests."""
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        "inference.fleet.tell._send", lambda server, task, *args, **_: said.append((task, *args))
    )
    return said


# -- What they say ----------------------------------------------------------------------------
def test_the_list_says_what_each_server_reports(admin: User) -> None:
    _slot, replicas, _new = rows.small_fleet(3)
    hours = timezone.now() - timedelta(hours=2)
    Server.objects.filter(name="gpu-2").update(reported_at=hours, active=False)
    rows.alert("replica_down", replica=replicas[0])
    page = html(signed_in(admin).get("/staff/servers/"))
    assert 'GPU 1 · NVIDIA RTX PRO 6000: <span class="number">40 GiB / 96 GiB</span>' in page
    assert ">793 GiB<" in page
    assert "vllm 0.33.0" in page
    assert page.count(">silent<") == 1
    assert page.count(">out of service<") == 1
    link = f'<a href="/staff/replicas/{replicas[0].pk}/">'
    assert f"A replica is down and out of the pool.</strong> {link}" in page
    assert page.index("A replica is down") < page.index("gpu-1")


def test_figures_of_a_server_that_says_nonsense_do_not_break_its_page(admin: User) -> None:
    report = {"disk_free_mib": "much", "fetches": {"a/b@c": {}}, "engines": {}}
    rows.server("gpu-1", gpus=0, report=report)
    assert signed_in(admin).get("/staff/servers/gpu-1/").status_code == 200
    assert signed_in(admin).get("/staff/servers/").status_code == 200


def test_the_page_is_told_only_what_has_changed(admin: User) -> None:
    client, server = signed_in(admin), rows.server("gpu-1")
    page = client.get("/staff/servers/gpu-1/").content.decode()
    address = page.split('hx-get="')[1].split('"')[0].replace("&amp;", "&")
    Server.objects.update(reported_at=timezone.now())
    server.report["fetches"] = {"acme/alder@c": {"state": "running", "percent": 41}}
    server.save()
    answer = client.get(address, headers={"hx-request": "true"})
    assert '<div hx-swap-oob="innerHTML:#server-now">' in answer.content.decode()
    assert ": 41 %" in html(answer)
    for ended, shown in ((timezone.now(), True), (timezone.now() - timedelta(hours=2), False)):
        done = {"state": "done", "percent": 100, "at": ended.timestamp()}
        server.report["fetches"] = {"acme/alder@c": done}
        server.save()
        page = html(client.get("/staff/servers/gpu-1/"))
        assert ('Fetched and whole: <span class="mono small">acme/alder@c' in page) == shown


def test_an_alert_is_dismissed_once(admin: User) -> None:
    alert = rows.alert("server_silent", server=rows.server("gpu-1"))
    client = signed_in(admin)
    for _ in range(2):
        page = html(client.post(f"/staff/alerts/{alert.pk}/dismiss/", follow=True))
        assert "has not reported" not in page
    assert FleetEvent.objects.get().actor == admin
    assert client.post("/staff/alerts/999999/dismiss/").status_code == 404


# -- What one can do --------------------------------------------------------------------------
def test_seats(admin: User) -> None:
    rows.server("gpu-1")
    client = signed_in(admin)
    assert client.post("/staff/servers/gpu-1/seats/", {"seats": "-1"}).status_code == 422
    assert Server.objects.get().seats == 25
    assert client.post("/staff/servers/gpu-1/seats/", {"seats": "40"}).status_code == 302
    assert Server.objects.get().seats == 40


def test_seats_that_somebody_else_saved_meanwhile_stay(admin: User, other_admin: User) -> None:
    rows.server("gpu-1")
    path = "/staff/servers/gpu-1/"

    def opened(client: Client) -> dict[str, str]:
        page = html(client.get(path))
        return {"seen": page.split('name="seen" value="')[1].split('"')[0]}

    first, second = signed_in(admin), signed_in(other_admin)
    hers, theirs = opened(first), opened(second)
    assert first.post(f"{path}seats/", {"seats": "40", **hers}).status_code == 302
    answer = second.post(f"{path}seats/", {"seats": "10", **theirs})
    page = html(answer)
    assert (answer.status_code, Server.objects.get().seats) == (422, 40)
    assert "Changed meanwhile to 40. Nothing was saved" in page
    assert 'name="seats" value="10"' in page
    assert first.post(f"{path}seats/", {"seats": "40", **hers}).status_code == 302  # twice
    again = {"seen": page.split('name="seen" value="')[1].split('"')[0]}
    assert second.post(f"{path}seats/", {"seats": "10", **again}).status_code == 302
    assert Server.objects.get().seats == 10


def test_out_and_back(admin: User) -> None:
    slot, replicas, _new = rows.small_fleet(2)
    client = signed_in(admin)
    asks = html(client.get("/staff/servers/gpu-1/out/"))
    assert "Its 2 replicas get no new requests, finish those they have, and stop." in asks
    choice = {"drain_minutes": "5", "at_deadline": "abort", "emptied": "nan"}
    client.post("/staff/servers/gpu-1/out/", {**choice, "drain_minutes": "x"})
    assert Server.objects.get().active
    client.post("/staff/servers/gpu-1/out/", choice)
    assert not Server.objects.get().active
    found = list(Replica.objects.values_list("goal", "drain_seconds", "at_deadline"))
    assert found == [("off", 300, "abort")] * 2
    client.post("/staff/servers/gpu-1/back/")
    assert Server.objects.get().active
    assert list(Replica.objects.values_list("goal", "goal_model")) == [("serve", slot.model_id)] * 2
    assert FleetEvent.objects.filter(actor=admin, server__name="gpu-1").count() == 6
    assert replicas[0].slot == slot


def test_before_a_server_goes_out_its_page_names_the_slots_that_end(admin: User) -> None:
    slot, _replicas, _new = rows.small_fleet(3)
    only_here = rows.slot("vectors", rows.catalogue_model("cedar"))
    rows.replica(only_here, Server.objects.get(name="gpu-1"))
    unused = rows.slot("unused", slot.model)
    rows.replica(unused, Server.objects.get(name="gpu-1"), state="off")
    client = signed_in(admin)

    def emptied(server: str) -> list[str]:
        answer = client.get(f"/staff/servers/{server}/out/")
        found = [slot.name for slot in answer.context["emptied"]]
        said = "These slots lose all their replicas" in html(answer)
        assert (said, all(f"<li>{name.title()}</li>" in html(answer) for name in found)) == (
            bool(found),
            True,
        )
        return found

    assert (emptied("gpu-1"), emptied("gpu-2")) == (["vectors"], [])
    Replica.objects.filter(server__name="gpu-2").update(state="failed")
    assert emptied("gpu-1") == ["nan", "vectors"]


OUT = {"drain_minutes": "5", "at_deadline": "cut"}


def test_a_server_in_a_swap_is_not_taken_out(admin: User) -> None:
    """Nor half of it: what another slot has there stays, too."""
    slot, replicas, new = rows.small_fleet(2)
    rows.replica(rows.slot("vectors", rows.catalogue_model("cedar")), replicas[0].server)
    rows.swap(slot, new, admin, state="running")
    choice = {**OUT, "emptied": ["nan", "vectors"]}
    page = html(signed_in(admin).post("/staff/servers/gpu-1/out/", choice, follow=True))
    assert "A swap is changing this replica." in page
    assert list(Replica.objects.values_list("goal", flat=True)) == ["serve"] * 3
    assert Server.objects.get().active


def test_slots_that_would_end_are_asked_about_when_it_was_not_said(admin: User) -> None:
    _slot, replicas, _new = rows.small_fleet(3)
    client, path = signed_in(admin), "/staff/servers/gpu-1/out/"
    assert "emptied" not in client.get(path).content.decode()
    Replica.objects.filter(pk=replicas[2].pk).update(state="failed")
    answer = client.post(path, OUT)
    page = html(answer)
    assert (answer.status_code, "These slots lose all their replicas" in page) == (422, True)
    assert 'name="emptied" value="nan"' in page
    assert Server.objects.get(name="gpu-1").active
    assert client.post(path, {**OUT, "emptied": "nan"}).status_code == 302


def test_out_and_back_pressed_twice(admin: User) -> None:
    rows.small_fleet(2)
    client, out = signed_in(admin), {**OUT, "emptied": "nan"}
    going = "Going out of service: its replicas finish what they have and stop."
    gone = "It is out of service already. Nothing was changed."
    assert [said(client, "/staff/servers/gpu-1/out/", out) for _ in range(2)] == [[going], [gone]]
    first, second = (said(client, "/staff/servers/gpu-1/back/") for _ in range(2))
    assert first[0].startswith("Back in service")
    assert second == ["It is in service already. Nothing was changed."]
    found = FleetEvent.objects.filter(what__startswith="server_").values_list("what", flat=True)
    assert list(found) == ["server_out", "server_back"]


def test_add_a_replica(admin: User) -> None:
    slot, _replicas, _new = rows.small_fleet(1)
    client = signed_in(admin)
    page = client.get("/staff/servers/gpu-1/").content.decode()
    assert 'name="port" value="8102"' in page
    data = {"slot": slot.pk, "gpus": ["1"], "port": "8101"}
    answer = client.post("/staff/servers/gpu-1/replicas/", data)
    assert (answer.status_code, "has this port" in html(answer)) == (422, True)
    answer = client.post("/staff/servers/gpu-1/replicas/", {**data, "gpus": ["7"], "port": "8102"})
    assert answer.status_code == 422
    for _ in range(2):  # a button pressed twice
        added = client.post("/staff/servers/gpu-1/replicas/", {**data, "port": "8102"})
        assert added.status_code == 302
    made = Replica.objects.latest("pk")
    assert (made.gpus, made.port, made.number, made.goal, made.state) == (
        [1],
        8102,
        2,
        "off",
        "off",
    )


def test_a_replica_that_its_slots_model_could_not_use_is_refused_when_it_is_added(
    admin: User,
) -> None:
    slot, (one, _other), _new = rows.small_fleet(2)
    rows.server("gpu-2")
    client, path = signed_in(admin), "/staff/servers/gpu-2/replicas/"
    needs = "Alder 35B A3B needs another number of GPUs than this replica has: 1, and not {}."
    for gpus in ([], ["0", "1"]):
        data = {"slot": slot.pk, "port": "8101", "gpus": gpus}
        answer = client.post(path, data)
        errors = answer.context["replica_form"].errors
        assert (answer.status_code, errors) == (422, {"gpus": [needs.format(len(gpus))]})
        assert needs.format(len(gpus)) in html(answer)
    assert Replica.objects.count() == 2
    empty = rows.slot("fresh")  # its first model may need none
    assert said(client, path, {"slot": empty.pk, "port": "8101"})[0].startswith("Added.")
    # One from before, whose slot has gone on to a model with other needs:
    Replica.objects.filter(pk=one.pk).update(gpus=[0, 1], goal="off", state="off", model=None)
    assert said(client, f"/staff/replicas/{one.pk}/in/") == [needs.format(2)]


def test_fetch_weights(admin: User, told: list[tuple[Any, ...]]) -> None:
    rows.server("gpu-1")
    model = rows.catalogue_model("alder")
    client = signed_in(admin)
    client.post("/staff/servers/gpu-1/fetch/", {"model": "999999"})
    assert told == []
    client.post("/staff/servers/gpu-1/fetch/", {"model": model.pk})
    assert told == [("gpu_fetch", "gpu-1", model.repo, model.revision, model.weights_mib)]
    server = Server.objects.get()
    server.report["weights"] = [model.weights]
    server.save()
    assert "✓ is there" in html(client.get("/staff/servers/gpu-1/"))
