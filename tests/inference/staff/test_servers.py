"""Servers as admins see and change them, and how a new one joins."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from inference.models import FleetEvent, Replica, Server
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import html
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


def test_out_and_back(admin: User) -> None:
    slot, replicas, _new = rows.small_fleet(2)
    client = signed_in(admin)
    asks = html(client.get("/staff/servers/gpu-1/out/"))
    assert "Its 2 replicas get no new requests, finish those they have, and stop." in asks
    choice = {"drain_minutes": "5", "at_deadline": "abort"}
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


def test_a_server_in_a_swap_is_not_taken_out(admin: User) -> None:
    slot, _replicas, new = rows.small_fleet(2)
    rows.swap(slot, new, admin, state="running")
    choice = {"drain_minutes": "5", "at_deadline": "cut"}
    page = html(signed_in(admin).post("/staff/servers/gpu-1/out/", choice, follow=True))
    assert "A swap is changing this replica." in page
    assert list(Replica.objects.values_list("goal", flat=True)) == ["serve", "serve"]


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
    client.post("/staff/servers/gpu-1/replicas/", {**data, "port": "8102"})
    made = Replica.objects.latest("pk")
    assert (made.gpus, made.port, made.number, made.goal, made.state) == (
        [1],
        8102,
        2,
        "off",
        "off",
    )


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


# -- A new one --------------------------------------------------------------------------------
@pytest.fixture
def shared(settings: Settings) -> None:
    settings.GPU_REDIS_URL = "rediss://:secret@10.8.0.1:6379"
    settings.ENGINE_API_KEY = "engine-key"


def invite(client: Client, name: str = "boreas") -> tuple[HttpResponse, str]:
    answer = client.post("/staff/servers/add/", {"name": name, "seats": "10"})
    return answer, str(answer.context["token"]) if "token" in (answer.context or {}) else ""


def join(token: str, address: str = "10.8.0.9", **more: Any) -> HttpResponse:
    body = {"version": 1, "token": token, "address": address, **more}
    return Client().post("/staff/servers/join", json.dumps(body), "application/json")


def test_a_new_server_joins_once(admin: User, shared: None) -> None:
    client = signed_in(admin)
    answer, token = invite(client)
    assert f"<code>{token}</code>" in html(answer)
    assert "no-store" in answer["Cache-Control"]
    assert client.get("/staff/servers/boreas/waiting").status_code == 204
    assert token not in client.get("/staff/servers/boreas/").content.decode()
    settings = join(token).json()["settings"]
    assert settings["NAN_GPU_NAME"] == "boreas"
    assert settings["REDIS_URL"] == "rediss://:secret@10.8.0.1:6379"
    again = join(token)
    assert (again.status_code, again.json()["error"]) == (403, "token_unknown")
    assert client.get("/staff/servers/boreas/waiting").status_code == 204
    Server.objects.update(reported_at=timezone.now())
    found = client.get("/staff/servers/boreas/waiting", headers={"hx-request": "true"})
    assert found["HX-Redirect"] == "/staff/servers/boreas/"


def test_the_command_of_the_page_is_one_that_the_host_takes(admin: User, shared: None) -> None:
    from inference.gpu.__main__ import _given, _parser
    from inference.gpu.host import Host

    page = invite(signed_in(admin))[0]
    command = page.context["command"]
    assert f"<code>{command}</code>" in html(page)
    assert "make setup python3 deploy/engine/install.py --target /opt/nan/engine" in html(page)
    python, options = command.split(" -m inference.gpu ")
    assert python == ".nan/venv/bin/python"
    given = _given(_parser().parse_args(options.split()))
    known = {"NAN_ROLE": "gpu", "NAN_GPU_NAME": "new", "ENGINE_API_KEY": "unknown"}
    assert Host.from_environ({**given, **known}).address == "10.8.0.7"


def test_the_settings_are_what_the_client_takes(admin: User, shared: None) -> None:
    from inference.gpu.join import REQUIRED, SETTINGS

    settings = set(join(invite(signed_in(admin))[1]).json()["settings"])
    assert set(REQUIRED) <= settings <= SETTINGS


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("add", "Choose another"),
        ("join", "Choose another"),
        ("Gpu_1", "Lower-case letters"),
        ("gpu-1", "already"),
    ],
)
def test_names_that_no_server_gets(name: str, said: str, admin: User) -> None:
    rows.server("gpu-1")
    answer, token = invite(signed_in(admin), name)
    assert (answer.status_code, token, said in html(answer)) == (422, "", True)


def test_a_second_token_ends_the_first(admin: User, shared: None) -> None:
    client = signed_in(admin)
    first, second = invite(client)[1], invite(client)[1]
    assert (join(first).status_code, join(second).status_code) == (403, 200)


def test_a_token_ends_after_a_day(admin: User, shared: None) -> None:
    token = invite(signed_in(admin))[1]
    Server.objects.update(join_until=timezone.now() - timedelta(seconds=1))
    assert join(token).json()["error"] == "token_unknown"
    assert "its token works no more" in html(signed_in(admin).get("/staff/servers/boreas/"))


def test_what_is_no_request_to_join(admin: User, shared: None) -> None:
    token = invite(signed_in(admin))[1]
    assert join(token, "8.8.8.8").json()["error"] == "address_refused"
    assert join(token, "0.0.0.0").json()["error"] == "address_refused"
    assert join(token, "nowhere").json()["error"] == "unreadable"
    assert join(token, "fe80::1%" + "x" * 500).json()["error"] == "unreadable"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"token": 3, "address": "10.0.0.1"}',
        '{"token": "x", "address": 167772161}',
        '{"token": "\\ud800", "address": "10.0.0.1"}',
        '{"token": "\\u0000", "address": "10.0.0.1"}',
        '{"token": NaN, "address": ' + "9" * 5000 + "}",
        "[" * 60_000,
        "x" * 70_000,
        b"\xff\xfe\x00",
    ],
    ids=lambda body: str(body[:25]),
)
def test_bodies_that_cannot_be_read(body: str, shared: None) -> None:
    answer = Client().post("/staff/servers/join", body, "application/json")
    assert (answer.status_code, answer.json()["error"]) == (403, "unreadable")


def test_joining_by_get() -> None:
    assert Client().get("/staff/servers/join").status_code == 405


def test_joining_is_limited_by_address(shared: None) -> None:
    answers = [join("wrong").status_code for _ in range(12)]
    assert answers == [403] * 10 + [429] * 2


def test_without_settings_for_servers_the_token_is_kept(admin: User, settings: Settings) -> None:
    settings.GPU_REDIS_URL = ""
    token = invite(signed_in(admin))[1]
    assert join(token).json()["error"] == "no_redis_for_servers"
    settings.GPU_REDIS_URL, settings.ENGINE_API_KEY = "rediss://10.8.0.1", "key"
    assert join(token).status_code == 200
