"""The status page and the staff's incidents, in every state in which they look different."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from playwright.sync_api import Page

from inference.fleet.alerts import open_alert
from inference.models import (
    ApiSample,
    FleetEvent,
    Incident,
    IncidentUpdate,
    Replica,
    ReplicaSample,
    Slot,
    SlotSample,
)
from inference.status.shelf import shelf
from members.models import User
from tests.browser.view import View, click, open_all
from tests.inference.staff import rows
from tests.inference.status.conftest import api_stood, stood
from tests.people import applicant, let_in, staff

FLAGS = {
    "max-model-len": 131_072,
    "tool-call-parser": "qwen3_coder",
    "speculative-config": {"method": "mtp", "num_speculative_tokens": 3},
}


def status_views() -> list[View]:
    admin = staff("Alma")
    slot, replicas, new = rows.small_fleet(2)
    type(new).objects.filter(pk=slot.model_id).update(flags=FLAGS)
    _measured(slot, replicas[0])
    down = rows.slot("embed", rows.catalogue_model("bge", "BGE M3", kind="embedding"))
    rows.replica(down, replicas[0].server)
    rows.slot("speech")
    out = rows.slot("vision", rows.catalogue_model("elm", "Elm 12B Vision"))
    _taken_out(rows.replica(out, replicas[0].server, state="off"), admin)
    stood(down, "ddddd")
    _api_was_down()
    incident = Incident.objects.create(slot=down, began_at=timezone.now() - timedelta(minutes=6))
    rows.alert("slot_down", slot=down)
    words = "The server's network card does not answer.\nWe are on it."
    IncidentUpdate.objects.create(incident=incident, text_es=words, text_en=words, author=admin)
    over = timezone.now() - timedelta(days=3)
    past = Incident.objects.create(slot=slot, began_at=over - timedelta(hours=2), ended_at=over)
    start = timezone.now() + timedelta(days=2)
    planned = rows.swap(slot, new, admin, state="approved")
    type(planned).objects.filter(pk=planned.pk).update(start_at=start)
    shelf.forget()
    return [
        View("status", "/status/", None, open_all),
        *_while_the_api_is_down(let_in(applicant("Hilda"), by=admin)),
        View("staff, incidents", "/staff/incidents/", admin),
        View("staff, incident", f"/staff/incidents/{incident.pk}/", admin),
        View("staff, incident refused", f"/staff/incidents/{past.pk}/", admin, _half),
        View("staff with a slot down", "/staff/", admin),
    ]


def _taken_out(replica: Replica, admin: User) -> None:
    """For two days until now, and for six hours two weeks ago."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    away = {*range(1, 49), *range(14 * 24, 14 * 24 + 6)}
    SlotSample.objects.bulk_create(
        SlotSample(
            slot=replica.slot, span="hour", at=hour - timedelta(hours=n), seconds=3600,
            up=n not in away, wanted=n not in away, out_seconds=3600 * (n in away),
            down_seconds=900 * (n == 14 * 24 + 8),
        )
        for n in range(1, 24 * 24)
    )  # fmt: skip
    stood(replica.slot, "o" * 20)
    at = hour - timedelta(hours=48)
    FleetEvent.objects.create(replica=replica, what="taken_out", at=at, actor=admin)


def _api_was_down() -> None:
    """For ten minutes yesterday, and again since two minutes ago."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for n in range(1, 15):
        ApiSample.objects.create(
            span="hour", at=today - timedelta(days=n), seconds=86_400, state="up",
            down_seconds=(n == 1) * 600,
        )  # fmt: skip
    began = api_stood("ggggg") - timedelta(minutes=2)
    Incident.objects.create(slot=None, began_at=began)
    open_alert("api_down", detail="api_gateway", at=began)


def _while_the_api_is_down(member: User) -> Iterator[View]:
    paths = {
        "docs": "/docs/",
        "aider": "/docs/examples/aider/",
        "key": "/key/",
        "usage": "/usage/",
    }
    for name, path in paths.items():
        yield View(f"{name} while the api is down", path, member)
    yield View("below status, not there", "/status/nothing/", member)


def _half(page: Page) -> None:
    page.fill("[name=text_es]", "Se fue la luz.")
    page.eval_on_selector("main form", "form => form.noValidate = true")
    click("main form .button")(page)


def _measured(slot: Slot, replica: Replica) -> None:
    now = timezone.now()
    for n in range(1, 9):
        ReplicaSample.objects.create(
            slot=slot, replica=replica, at=now - timedelta(seconds=30 * n), seconds=30, running=3,
            generated=4200, first_tokens=5, first_token_seconds=2.1, kv_usage=0.31,
            first_token_buckets={"0.5": 4, "1.0": 1},
        )  # fmt: skip
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for n in range(1, 24):
        SlotSample.objects.create(
            slot=slot, span="hour", at=today - timedelta(days=n), seconds=86_400, up=2, wanted=2,
            down_seconds=(n == 4) * 5400 + (n == 11) * 600, rotation_seconds=(n == 11) * 600,
        )  # fmt: skip
    stood(slot, "uuu")
