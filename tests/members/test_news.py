"""The first page: what comes next and what is new, for members; what runs now, for who comes by."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as site
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation
from pytest_django import Settings

from inference.models import (
    CatalogModel,
    Incident,
    IncidentUpdate,
    Key,
    KeyHolder,
    Slot,
    Swap,
)
from inference.status.shelf import shelf
from members import news
from members.models import News, User, Vote
from members.voting import closing, rounds
from tests.inference.staff import rows
from tests.inference.status.conftest import stood
from tests.members.voting.conftest import deadline_passes, in_days, with_options
from tests.pages.markup import words
from tests.people import signed_in

TEXTS = {"text_es": "Paramos el <b>jueves</b>.", "text_en": "We stop <b>on Thursday</b>."}


@pytest.fixture
def browser(member: User) -> Client:
    holder = KeyHolder.objects.create(owner_ref=member.public_id, member=member)
    now = timezone.now()
    Key.objects.create(
        holder=holder, state="active", token="a" * 64, hint="7Qf2", rpm=100, parallel=5,
        public_key=b"", active_at=now, revealed_at=now,
    )  # fmt: skip
    return signed_in(member)


@pytest.fixture
def fleet(db: None) -> tuple[Slot, CatalogModel]:
    """A slot that serves a model, and another model for it."""
    slot, _replicas, new = rows.small_fleet(1, prefix="box")
    return slot, new


def home(browser: Client, language: str = "en") -> str:
    shelf.forget()
    browser.cookies[site.LANGUAGE_COOKIE_NAME] = language
    return words(browser.get("/").content.decode())


# -- What comes next ----------------------------------------------------------------------------
def test_nothing_is_said_where_nothing_is_planned(browser: Client) -> None:
    found = home(browser)
    assert "No vote is open and no rotation is planned." in found
    assert "Nothing happened in the last month." in found


def test_a_round_from_its_plan_to_its_result(
    browser: Client, member: User, admin: User, fleet: tuple[Slot, CatalogModel]
) -> None:
    vote = with_options(fleet[0], member, admin)
    assert "2026-Q4" not in home(browser)
    rounds.schedule(vote=vote, actor=admin, opens_at=in_days(1), closes_at=in_days(8))
    assert "planned Opens:" in home(browser)
    vote = rounds.open_vote(vote=vote, actor=admin, closes_at=in_days(7))
    assert '<a class="button" href="/vote/2026-Q4/">To the ballot</a>' in (
        browser.get("/").content.decode()
    )
    assert closing.close(vote=deadline_passes(vote))
    found = home(browser)
    assert "To the ballot" not in found
    assert "The vote 2026-Q4 is counted 0 voted and 1 were needed: the current model" in found


def test_the_next_rotation(
    browser: Client, admin: User, fleet: tuple[Slot, CatalogModel], settings: Settings
) -> None:
    settings.SWAP_SECOND_ADMIN = True
    slot, new = fleet
    swap = rows.swap(slot, new, admin, state="planned")

    def becomes(**values: Any) -> str:
        Swap.objects.filter(pk=swap.pk).update(**values)
        return home(browser)

    assert f"→ {new} waits for a second admin" in becomes()
    assert f"→ {new} confirmed" in becomes(state="approved", start_at=in_days(2))
    assert f"→ {new} under way" in becomes(state="running", started_at=timezone.now())
    found = becomes(state="done", finished_at=timezone.now())
    assert "No vote is open and no rotation is planned." in found
    assert f"{slot.name}: {new.title} has taken the place of" in found


# -- News ---------------------------------------------------------------------------------------
def test_what_an_admin_writes_is_read_until_it_is_withdrawn(browser: Client, admin: User) -> None:
    staff = signed_in(admin)
    assert staff.post("/staff/news/", TEXTS)["Location"] == "/staff/news/"
    assert "We stop &lt;b&gt;on Thursday&lt;/b&gt;." in home(browser)
    assert "Paramos el &lt;b&gt;jueves&lt;/b&gt;." in home(browser, "es")
    row = News.objects.get()
    assert (row.author, row.withdrawn_at) == (admin, None)
    staff.post(f"/staff/news/{row.pk}/withdraw/")
    assert "Thursday" not in home(browser)
    assert "withdrawn" in words(staff.get("/staff/news/").content.decode())
    row.refresh_from_db()
    assert row.withdrawn_by == admin


def test_both_languages_are_needed_and_a_second_click_writes_nothing(admin: User) -> None:
    staff = signed_in(admin)
    half = staff.post("/staff/news/", {"text_es": "Paramos el jueves.", "text_en": ""})
    assert (half.status_code, News.objects.count()) == (422, 0)
    assert "Paramos el jueves." in half.content.decode()
    for _click in range(2):
        staff.post("/staff/news/", TEXTS)
    assert News.objects.count() == 1


def test_old_news_go(browser: Client, admin: User) -> None:
    row = news.write(actor=admin, **TEXTS)
    News.objects.filter(pk=row.pk).update(at=timezone.now() - timedelta(days=31))
    assert "Thursday" not in home(browser)


def test_an_incident_with_its_last_words(browser: Client, fleet: tuple[Slot, CatalogModel]) -> None:
    slot, _new = fleet
    began = timezone.now() - timedelta(hours=2)
    incident = Incident.objects.create(slot=slot, began_at=began)
    assert f"{slot.name}: the model is down" in home(browser)
    IncidentUpdate.objects.create(incident=incident, text_es="Ya vuelve.", text_en="It comes back.")
    Incident.objects.filter(pk=incident.pk).update(ended_at=timezone.now())
    assert f"{slot.name}: the model was down It comes back." in home(browser)
    assert "Ya vuelve." in home(browser, "es")


def test_a_plan_is_announced_with_the_admins_words(
    browser: Client, member: User, admin: User, fleet: tuple[Slot, CatalogModel]
) -> None:
    slot, new = fleet
    vote = with_options(slot, member, admin)
    swap = rows.swap(slot, new, admin, state="approved")
    told = {"announcement_es": "Por la noche.", "announcement_en": "At night."}
    Vote.objects.filter(pk=vote.pk).update(swap=swap, announced_at=timezone.now(), **told)
    assert f"{slot.name}: {new.title} takes the place of" in home(browser)
    assert "At night." in home(browser)
    Swap.objects.update(state="cancelled")
    assert "At night." not in home(browser)


def test_it_costs_the_same_however_much_happened(
    browser: Client, member: User, admin: User, fleet: tuple[Slot, CatalogModel]
) -> None:
    def happens(slug: str) -> None:
        News.objects.create(author=admin, text_es=f"sobre {slug}", text_en=f"about {slug}")
        vote = with_options(fleet[0], member, admin, slug)
        vote = rounds.open_vote(vote=vote, actor=admin, closes_at=in_days(7))
        assert closing.close(vote=deadline_passes(vote))

    def queries() -> int:
        home(browser)  # what the status page knows is asked for every few seconds
        with CaptureQueriesContext(connection) as captured:
            browser.get("/")
        return len(captured)

    happens("2026-Q1")
    one = queries()
    for slug in ("2026-Q2", "2026-Q3", "2026-Q4"):
        happens(slug)
    assert queries() == one


def test_news_are_written_by_admins(member: User, admin: User, client: Client) -> None:
    row = news.write(actor=admin, **TEXTS)
    for path in ("/staff/news/", f"/staff/news/{row.pk}/withdraw/"):
        assert signed_in(member).post(path, TEXTS).status_code == 403
        assert client.post(path, TEXTS)["Location"].startswith("/accounts/login/")
    assert News.objects.filter(withdrawn_at=None).count() == 1


def test_command(admin: User, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> Any:
        call_command("news", *words, "--json")
        return json.loads(capsys.readouterr().out)

    (written,) = run("write", "--es", "Hola.", "--en", "Hello.", "--as", admin.email)
    assert News.objects.get().author == admin
    assert run("list") == [written]
    (gone,) = run("withdraw", str(written["id"]))
    assert gone["withdrawn"]
    with translation.override("en"), pytest.raises(CommandError, match="withdrawn already"):
        run("withdraw", str(written["id"]))


# -- The landing page ---------------------------------------------------------------------------
def landing() -> str:
    shelf.forget()
    page = Client().get("/", headers={"accept-language": "en"})
    return words(page.content.decode())


def test_what_runs_now(fleet: tuple[Slot, CatalogModel]) -> None:
    slot, _new = fleet
    stood(slot, "uu")
    assert f"What runs now {slot.title} {slot.model} up" in landing()
    stood(slot, "d", until=timezone.now() + timedelta(milliseconds=1))
    assert f"{slot.title} {slot.model} model down" in landing()


def test_a_slot_that_admins_took_out_is_told_as_such(
    fleet: tuple[Slot, CatalogModel], browser: Client
) -> None:
    """On the landing page, and at home beside what a member would try to call."""
    slot = fleet[0]
    stood(slot, "u")
    assert "Chat" not in home(browser).split("Your key")[0]
    set_off(slot)
    assert f"What runs now {slot.title} {slot.model} taken out by the admins" in landing()
    said = f"{slot.title}: the admins have taken {slot.model} out of service. This is planned"
    assert said in home(browser).split("Your key")[0]
    Slot.objects.update(model=None)
    assert "What runs now" not in landing()
    assert "out of service" not in home(browser)


def test_the_key_page_does_not_say_that_it_answers(
    fleet: tuple[Slot, CatalogModel], browser: Client
) -> None:
    slot = fleet[0]
    stood(slot, "u")
    home(browser)
    assert f"{slot.model} answers for now." in words(browser.get("/key/").content.decode())
    set_off(slot)
    home(browser)
    said = words(browser.get("/key/").content.decode())
    assert f"the admins have taken {slot.model} out of service" in said
    assert "answers for now" not in said


def test_home_tells_of_a_slot_that_is_down(
    fleet: tuple[Slot, CatalogModel], browser: Client
) -> None:
    stood(fleet[0], "d")
    assert f"{fleet[0].title}: model down. Status" in home(browser)


def set_off(slot: Slot) -> None:
    slot.replicas.update(goal="off", state="off", model=None)


def test_members_who_wait_and_seats_are_counted(member: User, waiting: Any) -> None:
    found = landing()
    assert "active member 1 seats free 999 of 1,000 person waiting 1" in found
