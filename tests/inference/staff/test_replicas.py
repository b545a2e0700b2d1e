"""One replica on its page: what each button leads to, also pressed twice or by two at once."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from inference.models import FleetEvent, Replica, Server, Slot
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import Fleet, html
from tests.inference.staff.test_catalogue import GOOD
from tests.people import signed_in

OUT = {"drain_minutes": "2", "at_deadline": "cut"}
ROUNDS = 5


def post_at_once(
    asked: list[tuple[Client, str, dict[str, Any]]], answers: list[HttpResponse] | None = None
) -> list[int]:
    """In threads of their own, each with its own connection to the database; the statuses."""
    together, found = threading.Barrier(len(asked)), [] if answers is None else answers

    def post(client: Client, path: str, data: dict[str, Any]) -> None:
        try:
            together.wait(10)
            found.append(client.post(path, data))
        finally:
            connection.close()

    threads = [threading.Thread(target=post, args=one) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return sorted(answer.status_code for answer in found)


def said(client: Client, path: str, data: dict[str, Any] | None = None) -> list[str]:
    """The messages that the page after a button shows."""
    answer = client.post(path, data or {}, follow=True)
    return [str(message) for message in answer.context["messages"]]


# -- The last one ---------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_two_admins_who_take_out_the_last_two_at_once(admin: User, other_admin: User) -> None:
    """Both were told that the other one goes on serving; whoever comes second is asked again."""
    slot, replicas, _new = rows.small_fleet(2)
    clients = [signed_in(admin), signed_in(other_admin)]
    paths = [f"/staff/replicas/{one.pk}/out/" for one in replicas]
    for _ in range(ROUNDS):
        Replica.objects.update(goal="serve", goal_model=slot.model)
        for client, path in zip(clients, paths, strict=True):
            assert "One other replica of the slot goes on serving." in html(client.get(path))
        asked = [(client, path, OUT) for client, path in zip(clients, paths, strict=True)]
        assert post_at_once(asked) == [302, 422]
        assert sorted(Replica.objects.values_list("goal", flat=True)) == ["off", "serve"]


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_take_out_the_last_two_servers_at_once(
    admin: User, other_admin: User
) -> None:
    slot, _replicas, _new = rows.small_fleet(3)
    clients = [signed_in(admin), signed_in(other_admin)]
    paths = ["/staff/servers/gpu-1/out/", "/staff/servers/gpu-2/out/"]
    for _ in range(ROUNDS):
        Replica.objects.update(goal="serve", goal_model=slot.model)
        Server.objects.update(active=True)
        for client, path in zip(clients, paths, strict=True):
            assert "These slots lose all their replicas" not in html(client.get(path))
        asked = [(client, path, OUT) for client, path in zip(clients, paths, strict=True)]
        assert post_at_once(asked) == [302, 422]
        assert sorted(Server.objects.values_list("active", flat=True)) == [False, True]


@pytest.mark.django_db
def test_it_asks_again_when_the_others_have_gone_meanwhile(admin: User, fleet: Fleet) -> None:
    _slot, (one, other), _new = fleet
    client, path = signed_in(admin), f"/staff/replicas/{one.pk}/out/"
    page = html(client.get(path))
    assert ("One other replica" in page, 'name="last"' in page) == (True, False)
    Replica.objects.filter(pk=other.pk).update(goal="off")  # it drains: it serves for now
    answer = client.post(path, OUT)
    page = html(answer)
    assert (answer.status_code, "Nothing was done: no other replica" in page) == (422, True)
    assert "members get errors until one does" in page
    assert 'value="2"' in page  # what was chosen stays
    one.refresh_from_db()
    assert one.goal == "serve"
    assert said(client, path, {**OUT, "last": "yes"}) == ["It finishes what it has and stops."]
    one.refresh_from_db()
    assert one.goal == "off"


# -- The same button at the same moment -----------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_what_two_add_or_delete_at_once_is_added_or_deleted_once(
    admin: User, other_admin: User
) -> None:
    clients = [signed_in(admin), signed_in(other_admin)]
    common = {"kind": "chat", "least_concurrent": "0", "least_context": "0"}
    for n in range(1, ROUNDS + 1):
        slot = {**common, "name": f"slot-{n}", "title": f"Slot {n}", "number": str(n)}
        rows.server(f"gpu-{n}", gpus=0)
        at = f"/staff/servers/gpu-{n}/"
        assert post_at_once([(one, "/staff/slots/add/", slot) for one in clients]) == [302, 302]
        made = {"slot": Slot.objects.get(number=n).pk, "port": "8101"}
        assert post_at_once([(one, f"{at}replicas/", made) for one in clients]) == [302, 302]
        assert Replica.objects.filter(server__name=f"gpu-{n}").count() == 1
        Replica.objects.all().delete()
        model = {**GOOD, "name": f"model-{n}"}
        assert post_at_once([(one, "/staff/models/add/", model) for one in clients]) == [302, 302]
        assert post_at_once([(one, f"{at}delete/", {}) for one in clients]) == [302, 302]
    assert Server.objects.count() == 0
    counts = [FleetEvent.objects.filter(what=what).count() for what in ONCE]
    assert counts == [ROUNDS] * len(ONCE)


ONCE = ("added", "model_added", "server_deleted")


# -- In, out, again -------------------------------------------------------------------------------
NEW_START = "It starts, is tested, and joins the pool when it has passed."
ENDS_FIRST = "The engine that runs there ends first; then it starts anew and is tested."


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "goal", "sentence"),
    [
        ("serving", "serve", "It serves already. Nothing was changed."),
        ("starting", "serve", "It is on its way into service already. Nothing was changed."),
        ("failed", "serve", "It is to serve already, but it is down. “Try again” starts it."),
        ("off", "off", NEW_START),
        ("failed", "off", NEW_START),
        ("draining", "off", "Its engine still runs, so it goes back into the pool with it."),
        ("stopping", "off", ENDS_FIRST),
    ],
)
def test_put_in_service_says_what_follows(
    state: str, goal: str, sentence: str, admin: User, fleet: Fleet
) -> None:
    slot, (one, _other), _new = fleet
    model = None if state in ("off", "failed") else slot.model
    Replica.objects.filter(pk=one.pk).update(state=state, goal=goal, model=model)
    assert said(signed_in(admin), f"/staff/replicas/{one.pk}/in/") == [sentence]
    one.refresh_from_db()
    assert one.goal == "serve"
    assert FleetEvent.objects.filter(what="put_in").count() == (goal == "off")


@pytest.mark.django_db
def test_an_engine_of_an_earlier_model_does_not_go_back_into_the_pool(
    admin: User, fleet: Fleet
) -> None:
    _slot, (one, _other), new = fleet
    Replica.objects.filter(pk=one.pk).update(state="draining", goal="off", model=new)
    assert said(signed_in(admin), f"/staff/replicas/{one.pk}/in/") == [ENDS_FIRST]


@pytest.mark.django_db
def test_one_on_a_server_that_is_gone_can_be_removed(admin: User, fleet: Fleet) -> None:
    """Nobody is there who could end its engine; it is out of the pool."""
    _slot, replicas, _new = fleet
    one, client = replicas[0], signed_in(admin)
    Replica.objects.filter(pk=one.pk).update(goal="off", state="stopping", instance="r1-g1-v1")
    path = f"/staff/replicas/{one.pk}/"
    for minutes, offered in ((0, False), (5, False), (11, True)):
        Server.objects.update(reported_at=timezone.now() - timedelta(minutes=minutes))
        page = html(client.get(path))
        assert (f'action="{path}remove/"' in page) == offered
        assert ("If the server will not be back" in page) == offered
        assert ("its engine is stopped when gpu-1 is back." in page) == (minutes > 0)
        if not offered:
            (refused,) = said(client, f"{path}remove/")
            assert "Take the replica out first" in refused
    (warned,) = said(client, f"/staff/replicas/{replicas[1].pk}/in/")[1:]
    assert "gpu-1 has not reported since" in warned
    assert said(client, f"{path}remove/") == ["Removed. Its GPUs and its port are free."]


@pytest.mark.django_db
def test_every_button_pressed_twice(admin: User, fleet: Fleet) -> None:
    slot, (one, _other), _new = fleet
    client, path = signed_in(admin), f"/staff/replicas/{one.pk}/"
    assert said(client, f"{path}out/", OUT) == ["It finishes what it has and stops."]
    again = "It is out of service already. Nothing was changed."
    assert said(client, f"{path}out/", {**OUT, "drain_minutes": "9"}) == [again]
    one.refresh_from_db()
    assert one.drain_seconds == 120
    down = {"state": "failed", "goal": "serve", "goal_model": slot.model, "error_code": "died"}
    Replica.objects.filter(pk=one.pk).update(**down)
    assert said(client, f"{path}retry/") == ["It is started again."]
    assert said(client, f"{path}retry/") == ["It is about to be started again already."]
    Replica.objects.filter(pk=one.pk).update(state="off", goal="off")
    assert said(client, f"{path}remove/") == ["Removed. Its GPUs and its port are free."]
    assert said(client, f"{path}remove/") == ["This replica has been removed already."]
    found = FleetEvent.objects.filter(actor=admin).values_list("what", flat=True)
    assert list(found) == ["taken_out", "retried", "removed"]


@pytest.mark.django_db
def test_none_is_put_in_while_a_swap_changes_the_others(admin: User, fleet: Fleet) -> None:
    """It would be left on the old model."""
    slot, (_one, other), new = fleet
    Replica.objects.filter(pk=other.pk).update(state="off", goal="off", model=None)
    swap = rows.swap(slot, new, admin, state="running")
    swap.parts.filter(replica=other).delete()
    sentence = said(signed_in(admin), f"/staff/replicas/{other.pk}/in/")
    assert sentence[0].startswith("A swap is changing this slot.")
    other.refresh_from_db()
    assert other.goal == "off"


# -- By itself ------------------------------------------------------------------------------------
@pytest.mark.django_db
def test_what_happened_and_the_buttons_follow_by_themselves(admin: User, fleet: Fleet) -> None:
    _slot, (one, _other), _new = fleet
    client = signed_in(admin)
    page = client.get(f"/staff/replicas/{one.pk}/").content.decode()
    address = page.split('id="live" hidden hx-get="')[1].split('"')[0].replace("&amp;", "&")
    assert client.get(address, headers={"hx-request": "true"}).status_code == 204
    Replica.objects.filter(pk=one.pk).update(state="failed", error_code="died", model=None)
    FleetEvent.objects.create(replica=one, server=one.server, what="failed", detail="died")
    answer = client.get(address, headers={"hx-request": "true"}).content.decode()
    changed = {part.split('"')[0] for part in answer.split("innerHTML:#")[1:]}
    assert changed == {"replica-now", "replica-actions", "replica-events"}
    assert f"/staff/replicas/{one.pk}/retry/" in answer
    Replica.objects.filter(pk=one.pk).delete()
    gone = client.get(address, headers={"hx-request": "true"})
    assert gone["HX-Redirect"] == "/staff/slots/"
