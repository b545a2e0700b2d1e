"""The page from which admins have the calls of examples made, and see what came of them."""

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from inference.models import ProbeResult, ProbeRun, Replica, Slot
from members.models import User
from tests.inference.staff import rows
from tests.pages.markup import faults, words
from tests.people import signed_in

pytestmark = pytest.mark.django_db
PAGE, WORKS = "/staff/probes/", "/docs/examples/works/"


@pytest.fixture
def slot() -> Slot:
    return rooms_slot("nan")


def rooms_slot(name: str) -> Slot:
    made = rows.slot(name, rows.catalogue_model(f"alder-{name}", "Alder 35B"))
    rows.replica(made, rows.server(f"of-{name}"))
    return made


@pytest.fixture
def staff(admin: User) -> Client:
    return signed_in(admin)


def look(client: Client, path: str = PAGE) -> str:
    answer = client.get(path)
    assert (answer.status_code, faults(answer, language="en")) == (200, [])
    return words(answer.content.decode())


def test_the_button_asks_once(slot: Slot, staff: Client, other_admin: User) -> None:
    assert "They have not been made yet." in look(staff)
    answer = staff.post(f"{PAGE}run/", follow=True)
    said = words(answer.content.decode())
    assert "Asked for 1 slot. The default worker makes the calls;" in said
    assert "waits for the worker" in said
    run = ProbeRun.objects.get()
    assert (run.slot, run.cause, run.state) == (slot, "asked", "asked")
    for again in (staff, signed_in(other_admin)):
        said = words(again.post(f"{PAGE}run/", follow=True).content.decode())
        assert "The calls are being made already." in said
    assert ProbeRun.objects.count() == 1


def test_what_came_of_it(slot: Slot, staff: Client) -> None:
    run = ProbeRun.objects.create(
        slot=slot, model=slot.model, cause="night", state="done", finished_at=timezone.now()
    )
    for name, code in (("chat", ""), ("stream", ""), ("tools", "smoke_tool_call_lost")):
        ProbeResult.objects.create(
            slot=slot, model=slot.model, call=name, ok=not code, code=code, run=run
        )
    said = look(staff)
    assert "(nightly), with Alder 35B." in said
    assert "With this model 2 calls work, 1 fail." in said
    assert "A tool call :" in said
    ProbeRun.objects.update(state="failed", error_code="probe_no_key")
    assert "The gateway made no key for the probes." in look(staff)


def test_it_follows_while_calls_are_made(slot: Slot, staff: Client) -> None:
    assert 'id="live"' not in staff.get(PAGE).content.decode()
    staff.post(f"{PAGE}run/")
    page = staff.get(PAGE).content.decode()
    assert 'hx-get="/staff/probes/now?seen=' in page
    ProbeRun.objects.update(state="running", left=[["chat", 1]])
    assert "1 call is left." in words(staff.get(f"{PAGE}now?seen=x").content.decode())
    ProbeRun.objects.update(state="done", left=[], finished_at=timezone.now())
    assert 'id="live"' not in staff.get(f"{PAGE}now?seen=x").content.decode()


def test_where_nothing_answers_nothing_is_asked(slot: Slot, staff: Client) -> None:
    Replica.objects.update(goal="off", state="off", model=None)
    assert "Its model does not answer now, so nothing can be checked" in look(staff)
    said = words(staff.post(f"{PAGE}run/", follow=True).content.decode())
    assert "No model answers that could be checked" in said
    assert not ProbeRun.objects.exists()


def test_pages_say_when_they_ran_and_whether_they_do(
    slot: Slot, staff: Client, member: User, settings: Settings
) -> None:
    reader = signed_in(member)
    said = look(reader, WORKS)
    assert "after each rotation, and every night" in said
    assert "They have not been made yet." in said
    assert "Have them made now" not in said
    assert "Have them made now" in look(staff, WORKS)
    settings.PROBES = False
    assert "only when an admin asks for it" in look(reader, WORKS)
    assert "(PROBES=0), only by this button" in look(staff)
    ProbeResult.objects.create(slot=slot, model=slot.model, call="chat", ok=True)
    said = look(reader, WORKS)
    assert "Last made: " in said
    assert "not been made yet" not in said


def test_only_admins(slot: Slot, member: User) -> None:
    for client, status in ((signed_in(member), 403), (Client(), 302)):
        for answer in (client.get(PAGE), client.get(f"{PAGE}now"), client.post(f"{PAGE}run/")):
            assert answer.status_code == status
    assert not ProbeRun.objects.exists()


def test_it_costs_the_same_however_many_slots(
    slot: Slot, staff: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    from inference.staff import probes

    with django_assert_num_queries(4):
        probes._rows()
    for name in ("two", "three"):
        other = rooms_slot(name)
        ProbeResult.objects.create(slot=other, model=other.model, call="chat", ok=True)
        ProbeRun.objects.create(slot=other, model=other.model, cause="night")
    with django_assert_num_queries(4):
        probes._rows()
