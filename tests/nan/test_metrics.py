"""/metrics tells states and ages from rows, and of nobody in particular."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries

from inference.fleet.alerts import open_alert
from inference.heartbeats import beat
from inference.models import FleetEvent, Incident, Server
from members import mails
from members.models import Application, Decision, Mail, User
from tests.inference.staff import rows
from tests.people import applicant

pytestmark = pytest.mark.django_db


def scrape(client: Client) -> dict[tuple[str, ...], float]:
    """Name and label values of each sample, by the labels' names."""
    text = client.get("/metrics").content.decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_fleet(client: Client) -> None:
    slot, replicas, _ = rows.small_fleet(2)
    down = rows.replica(slot, Server.objects.get(), state="failed")
    Incident.objects.create(slot=slot, began_at=timezone.now())
    open_alert("replica_down", replica=down)
    seen = scrape(client)
    assert seen["nan_slot_replicas_wanted", "slot01"] == 3
    assert seen["nan_slot_replicas_serving", "slot01"] == 2
    assert (seen["nan_slot_rotating", "slot01"], seen["nan_slot_incident", "slot01"]) == (0, 1)
    assert seen["nan_replica_state", f"r{down.pk}", "slot01", "failed"] == 1
    assert seen["nan_replica_state", f"r{down.pk}", "slot01", "serving"] == 0
    assert seen["nan_replica_state", f"r{replicas[0].pk}", "slot01", "serving"] == 1
    assert (seen["nan_alerts_open",], seen["nan_servers_silent",]) == (1, 0)
    assert seen["nan_api_incident",] == 0
    Incident.objects.create(slot=None, began_at=timezone.now())
    assert scrape(client)["nan_api_incident",] == 1


def test_a_silent_server(client: Client) -> None:
    rows.server("box", reported_at=timezone.now() - timedelta(minutes=5))
    assert scrape(client)["nan_servers_silent",] == 1


def test_a_swap_that_stands_still(client: Client, admin: User) -> None:
    slot, _, new = rows.small_fleet(1)
    row = rows.swap(slot, new, admin, state="running")
    assert 290 < scrape(client)["nan_swap_stuck_seconds",] < 310
    FleetEvent.objects.create(swap=row, what="draining")
    assert scrape(client)["nan_swap_stuck_seconds",] < 5
    FleetEvent.objects.update(at=timezone.now() - timedelta(hours=1))
    row.paused_at = timezone.now()
    row.save()
    assert scrape(client)["nan_swap_stuck_seconds",] == 0  # it is meant to


def test_signs_of_life(client: Client) -> None:
    beat("default")
    beat("default")
    seen = scrape(client)
    age = timezone.now().timestamp() - seen["nan_beat_timestamp_seconds", "default"]
    assert 0 <= age < 5
    assert seen["nan_beat_timestamp_seconds", "fleet"] == 0


def test_the_waitlist(client: Client, waiting: Application, admin: User) -> None:
    days = timedelta(days=9)
    Application.objects.update(applied_at=timezone.now() - days)
    assert scrape(client)["nan_waitlist_untouched_seconds",] == pytest.approx(9 * 86_400, abs=10)
    other = applicant("Otis")
    Decision.objects.create(
        application=other, action="approve", from_state="pending", to_state="approved",
        actor=admin, at=timezone.now() - timedelta(days=2), final_at=timezone.now(),
    )  # fmt: skip
    assert scrape(client)["nan_waitlist_untouched_seconds",] == pytest.approx(2 * 86_400, abs=10)
    Application.objects.update(state="withdrawn")
    seen = scrape(client)
    assert (seen["nan_waitlist_untouched_seconds",], seen["nan_waitlist_people",]) == (0, 0)


def test_mail(client: Client, outsider: User) -> None:
    mails.reset_password(outsider)
    old = timezone.now() - timedelta(hours=2)
    Mail.objects.update(created_at=old, attempts=3, due_at=timezone.now() + timedelta(hours=1))
    seen = scrape(client)
    assert (seen["nan_mails", "late"], seen["nan_mails", "failed"]) == (1, 0)
    assert seen["nan_mail_oldest_seconds",] == pytest.approx(7200, abs=10)
    Mail.objects.update(state="failed")
    seen = scrape(client)
    assert (seen["nan_mails", "failed"], seen["nan_mail_oldest_seconds",]) == (1, 0)


def test_a_mail_that_waits_for_its_time_is_not_late(client: Client, outsider: User) -> None:
    mails.reset_password(outsider)
    Mail.objects.update(due_at=timezone.now() + timedelta(hours=1))
    seen = scrape(client)
    assert (seen["nan_mail_oldest_seconds",], seen["nan_mails", "late"]) == (0, 0)


def test_no_name_and_no_address_is_in_it(client: Client, waiting: Application) -> None:
    slot, _, _ = rows.small_fleet(2, prefix="hetzner")
    open_alert("server_silent", server=Server.objects.first())
    text = client.get("/metrics").content.decode()
    for secret in ("hetzner", "10.8.", "wanda", "example.org", slot.name + '"', "alder"):
        assert secret not in text.lower()


@pytest.mark.parametrize("replicas", [1, 6])
def test_queries_do_not_grow(
    replicas: int, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rows.small_fleet(replicas)
    client.get("/metrics")
    with django_assert_num_queries(15):
        client.get("/metrics")


def test_series_do_not_come_and_go(client: Client) -> None:
    """What is alerted on is there before anything happens, but for what belongs to a row."""
    names: set[Any] = {key[0] for key in scrape(client)}
    assert {
        "nan_swap_stuck_seconds", "nan_alerts_open", "nan_servers_silent", "nan_mails",
        "nan_api_incident",
        "nan_beat_timestamp_seconds", "nan_mail_oldest_seconds", "nan_name_drift",
        "nan_waitlist_untouched_seconds", "nan_key_drift", "nan_key_reconciled_timestamp_seconds",
    } <= names  # fmt: skip
