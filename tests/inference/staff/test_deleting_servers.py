"""A server that is no more: its token, what waits for it, what is still believed of it."""

import pytest
from django.conf import settings
from django.utils import timezone
from redis import Redis

from inference.fleet import reports, tell
from inference.models import FleetEvent, Replica, Server
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import html
from tests.inference.staff.test_joining import invite, join, shared
from tests.inference.staff.test_replicas import said
from tests.people import signed_in

__all__ = ["shared"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queues that are deleted at the broker."""
    found: list[str] = []
    monkeypatch.setattr(
        "inference.fleet.tell.drop_queue", lambda server: found.append(server.queue)
    )
    return found


def test_one_that_was_added_by_mistake_is_deleted(
    admin: User, shared: None, dropped: list[str]
) -> None:
    client = signed_in(admin)
    token = invite(client)[1]
    page = client.get("/staff/servers/boreas/").content.decode()
    assert 'href="/staff/servers/boreas/delete/"' in page
    asks = html(client.get("/staff/servers/boreas/delete/"))
    assert "Its token ends with it." in asks
    assert "gpu.env" not in asks  # no host was ever told anything
    assert Server.objects.exists()
    path = "/staff/servers/boreas/delete/"
    assert said(client, path) == ["boreas is deleted. Its token works no more."]
    assert said(client, path) == ["There is no server boreas."]
    assert (Server.objects.count(), dropped) == (0, ["gpu.boreas"])
    assert join(token).json()["error"] == "token_unknown"
    found = FleetEvent.objects.values_list("what", "detail", "actor")
    assert list(found) == [
        ("invited", "boreas", admin.pk),
        ("server_deleted", "boreas", admin.pk),
    ]
    page = html(client.get("/staff/servers/"))
    assert f"server deleted, {admin.call_name}. boreas" in page
    gone = client.get("/staff/servers/boreas/now", headers={"hx-request": "true"})
    assert gone["HX-Redirect"] == "/staff/servers/"
    gone = client.get("/staff/servers/boreas/waiting", headers={"hx-request": "true"})
    assert gone["HX-Redirect"] == "/staff/servers/"


def test_one_that_had_joined_is_no_longer_believed(admin: User, dropped: list[str]) -> None:
    server = rows.server("gpu-1", join_digest="", join_until=timezone.now())
    alert = rows.alert("server_silent", server=server, hooked="open")
    client = signed_in(admin)
    assert "End its worker there and delete its gpu.env." in html(
        client.get("/staff/servers/gpu-1/delete/")
    )
    assert said(client, "/staff/servers/gpu-1/delete/") == ["gpu-1 is deleted."]
    assert (Server.objects.count(), dropped) == (0, ["gpu.gpu-1"])
    assert reports.take("gpu-1", {"serial": 10**9}) is False
    assert Server.objects.count() == 0
    alert.refresh_from_db()
    assert (alert.server, alert.closed_at is None) == (None, False)  # the webhook hears of its end


def test_what_waits_on_its_queue_goes_too(admin: User) -> None:
    server = rows.server("gone-one")
    broker = Redis.from_url(settings.CELERY_BROKER_URL)
    broker.delete(server.queue)
    tell.report(server)
    assert broker.llen(server.queue) == 1
    signed_in(admin).post("/staff/servers/gone-one/delete/")
    assert (broker.llen(server.queue), Server.objects.count()) == (0, 0)


def test_one_with_replicas_is_not_deleted(admin: User, dropped: list[str]) -> None:
    _slot, replicas, _new = rows.small_fleet(2)
    Replica.objects.update(goal="off", state="off")
    client, path = signed_in(admin), "/staff/servers/gpu-1/delete/"
    assert "delete/" not in client.get("/staff/servers/gpu-1/").content.decode()
    page = html(client.get(path))
    assert "It can't be deleted while replicas stand on it." in page
    assert f'<a href="/staff/replicas/{replicas[0].pk}/">gpu-1:8101</a>' in page
    assert '<form method="post">' not in page
    assert said(client, path)[0].startswith("Replicas stand on this server.")
    assert (Server.objects.count(), dropped) == (1, [])


def test_djangos_admin_takes_no_fleet_apart(admin: User) -> None:
    _slot, replicas, _new = rows.small_fleet(1)
    client = signed_in(admin)
    own = Server.objects.create(name="by-hand", seats=4)
    path = f"/admin/inference/server/{own.pk}"
    assert client.get(f"{path}/delete/").status_code == 403
    assert 'name="active"' in client.get(f"{path}/change/").content.decode()
    page = client.get(f"/admin/inference/server/{replicas[0].server.pk}/change/")
    assert 'name="seats"' in page.content.decode()
    assert 'name="active"' not in page.content.decode()
