"""How a new server joins: its token, and what the host gets for it."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from inference.models import Server
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import html
from tests.inference.staff.test_replicas import ROUNDS, post_at_once, said
from tests.people import signed_in

pytestmark = pytest.mark.django_db


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


@pytest.mark.django_db(transaction=True)
def test_of_two_who_add_the_same_server_at_once_one_is_told(
    admin: User, other_admin: User, shared: None
) -> None:
    """A page with a token that is dead already would be found out on the host only."""
    clients = [signed_in(admin), signed_in(other_admin)]
    for n in range(ROUNDS):
        name, answers = f"boreas-{n}", list[HttpResponse]()
        data = {"name": name, "seats": "10"}
        asked = [(one, "/staff/servers/add/", data) for one in clients]
        assert post_at_once(asked, answers) == [200, 422]
        told, shown = sorted(answers, key=lambda answer: -answer.status_code)
        assert "There is a server of this name already." in html(told)
        assert join(shown.context["token"]).status_code == 200


def test_another_admin_ends_no_token_unseen(admin: User, other_admin: User, shared: None) -> None:
    token = invite(signed_in(admin))[1]
    answer = invite(signed_in(other_admin))[0]
    refused = "There is a server of this name already. Its own page makes another token for it."
    assert (answer.status_code, refused in html(answer)) == (422, True)
    assert join(token).status_code == 200


def test_another_token_changes_nothing_else(admin: User, shared: None) -> None:
    """From a page that was opened before somebody changed the seats."""
    client = signed_in(admin)
    first = invite(client)[1]
    assert 'action="/staff/servers/boreas/token/"' in html(client.get("/staff/servers/boreas/"))
    Server.objects.update(seats=33)
    answer = client.post("/staff/servers/boreas/token/")
    second = answer.context["token"]
    assert Server.objects.get().seats == 33
    assert (join(first).status_code, join(second).status_code) == (403, 200)
    Server.objects.update(reported_at=timezone.now())
    refusal = said(client, "/staff/servers/boreas/token/")
    assert refusal[0].startswith("This server has joined and reports")


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
