"""Admins write about an incident, in both languages; everybody reads it."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from inference.models import Incident, IncidentUpdate
from inference.staff import incidents
from inference.status import pages, shelf
from members.models import User
from tests.inference.staff import rows
from tests.people import signed_in

pytestmark = pytest.mark.django_db
WORDS = {"text_es": "Se fue la luz.", "text_en": "The power went."}


@pytest.fixture(autouse=True)
def _own_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = shelf.Shelf(tmp_path / "status.json", aside=lambda run, seconds: run())
    for module in (pages, incidents):
        monkeypatch.setattr(module, "shelf", fresh)


@pytest.fixture
def incident(db: None) -> Incident:
    slot = rows.small_fleet(1, prefix="box")[0]
    return Incident.objects.create(slot=slot, began_at=timezone.now() - timedelta(minutes=5))


def test_an_update_is_read_by_everybody_at_once(
    admin: User, incident: Incident, client: Client
) -> None:
    assert "The power went." not in client.get("/status/?language=en").content.decode()
    page = signed_in(admin).post(f"/staff/incidents/{incident.pk}/", WORDS, follow=True)
    assert "Written. It is on the status page." in page.content.decode()
    update = IncidentUpdate.objects.get()
    assert (update.author, update.text_es, update.text_en) == (admin, *WORDS.values())
    assert "The power went." in client.get("/status/?language=en").content.decode()
    assert "Se fue la luz." in client.get("/status/?language=es").content.decode()


@pytest.mark.parametrize("lacking", ["text_es", "text_en"])
def test_both_languages_are_needed_and_nothing_is_lost(
    admin: User, incident: Incident, lacking: str
) -> None:
    page = signed_in(admin).post(f"/staff/incidents/{incident.pk}/", {**WORDS, lacking: " "})
    kept = next(text for name, text in WORDS.items() if name != lacking)
    assert kept in page.content.decode()
    assert "This field is required." in page.content.decode()
    assert IncidentUpdate.objects.count() == 0


def test_a_button_pressed_twice_writes_once(admin: User, incident: Incident) -> None:
    for _ in range(2):
        signed_in(admin).post(f"/staff/incidents/{incident.pk}/", WORDS)
    assert IncidentUpdate.objects.count() == 1


def test_the_list(admin: User, incident: Incident) -> None:
    page = signed_in(admin).get("/staff/incidents/").content.decode()
    assert 'href="/staff/incidents/" aria-current="page"' in page
    assert (page.count("going on"), page.count(f"/staff/incidents/{incident.pk}/")) == (1, 2)


def test_only_admins(member: User, incident: Incident, client: Client) -> None:
    for path in ("/staff/incidents/", f"/staff/incidents/{incident.pk}/"):
        assert signed_in(member).get(path).status_code == 403
        assert signed_in(member).post(path, WORDS).status_code in (403, 405)
        assert client.get(path).status_code == 302
    assert IncidentUpdate.objects.count() == 0
