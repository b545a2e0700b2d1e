"""A recall that waits for another round, as members and admins see it."""

import pytest
from django.test import Client

from members.models import Vote
from tests.members.voting.pages.conftest import text
from tests.members.voting.test_recall import rotated, waiting

__all__ = ["rotated", "waiting"]
pytestmark = pytest.mark.django_db


def test_members_read_that_it_waits(waiting: Vote, ana: Client) -> None:
    says = "It opens by itself as soon as the other vote about this, or the rotation under way"
    for page in (f"/vote/{waiting.slug}/", "/vote/"):
        assert says in text(ana.get(page)), page
    assert "Opens:" not in text(ana.get("/vote/"))
    assert "It opens on" not in text(ana.get(f"/vote/{waiting.slug}/"))


def test_admins_find_no_button_and_a_reason(waiting: Vote, alma: Client) -> None:
    page = f"/staff/votes/{waiting.slug}/"
    shown = alma.get(page)
    assert "no admin cancels it" in text(shown)
    assert "Another vote about this is open." in text(shown)
    assert f'action="{page}' not in shown.content.decode()
    assert "Opens" not in text(shown)
    for action in ("rules", "schedule", "open", "cancel", "take-off", "add"):
        data = {
            "quorum_percent": "100",
            "opens_at": "2031-01-01T10:00",
            "closes_at": "2031-01-09T10:00",
            "candidate": str(waiting.candidates.get(position=1).pk),
        }
        answer = alma.post(f"{page}{action}/", data, follow=True)
        assert answer.status_code in (200, 404), action
        if action != "add":
            assert "Members asked for this recall" in text(answer), action
    waiting.refresh_from_db()
    assert (waiting.state, waiting.quorum_percent) == ("preparing", 30)
