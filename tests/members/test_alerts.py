"""Admins hear of each alert once: by mail when it opens, by the webhook also when it closes."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import httpx
import pytest
from allauth.account.models import EmailAddress
from django.utils import timezone, translation
from pytest_django import Settings

from inference.fleet.alerts import close_alert, open_alert
from inference.models import Alert, Replica
from members import alerts, letters, outbox
from members.models import Mail, User
from members.webhook import NotDelivered, Unsure, Webhook
from tests.fakes.smtp import SmtpServer
from tests.fakes.webhook import FakeWebhook
from tests.inference.staff import rows
from tests.members.test_outbox import well_written
from tests.people import person, staff

pytestmark = pytest.mark.django_db
QUICK = httpx.Timeout(0.4)


@pytest.fixture
def replica(db: None) -> Replica:
    return rows.small_fleet(1)[1][0]


@pytest.fixture
def hook(settings: Settings) -> Iterator[FakeWebhook]:
    with FakeWebhook() as fake:
        settings.ALERT_WEBHOOK_URL = fake.url
        yield fake


def later(**span: float) -> datetime:
    return timezone.now() + timedelta(**span)


def mailed() -> list[tuple[str, int]]:
    found = Mail.objects.filter(kind="alerts").order_by("pk")
    return [(mail.to, len(mail.params["alerts"])) for mail in found]


# -- Mail -------------------------------------------------------------------------------------
def test_each_admin_gets_one_mail_for_a_storm(
    admin: User, other_admin: User, outsider: User, replica: Replica
) -> None:
    open_alert("replica_down", replica=replica, detail="killed")
    open_alert("server_silent", server=replica.server)
    assert alerts.mail_admins() == 0  # others may follow within seconds
    open_alert("pool_unreachable")
    assert alerts.mail_admins(later(seconds=11)) == 3
    assert mailed() == [("alma@example.org", 3), ("bruno@example.org", 3)]
    assert alerts.mail_admins(later(minutes=9)) == 0


def test_alerts_soon_after_a_mail_wait_for_the_next(admin: User, replica: Replica) -> None:
    open_alert("replica_down", replica=replica)
    alerts.mail_admins(later(seconds=11))
    for _ in range(3):  # a flapping one
        close_alert("replica_down", replica=replica)
        open_alert("replica_down", replica=replica)
    assert alerts.mail_admins(later(minutes=4)) == 0
    assert alerts.mail_admins(later(minutes=6)) == 1
    assert [count for _, count in mailed()] == [1, 1]


@pytest.mark.parametrize("code", ["slot_down", "api_down"])
def test_that_members_are_not_answered_waits_for_nothing(
    admin: User, replica: Replica, code: str
) -> None:
    """An engine's end is noticed at once, its slot's a minute later: just after the first mail."""
    open_alert("replica_down", replica=replica)
    alerts.mail_admins(later(seconds=11))
    about = {"slot": replica.slot} if code == "slot_down" else {}
    open_alert(code, at=later(seconds=-20), **about)
    assert alerts.mail_admins(later(seconds=70)) == 1
    assert [count for _, count in mailed()] == [1, 1]


def test_only_admins_with_a_confirmed_address_are_written_to(db: None) -> None:
    person("Nina", is_staff=True, confirmed=False)
    staff("Gone")
    User.objects.filter(name="Gone").update(is_active=False)
    open_alert("pool_unreachable")
    assert alerts.mail_admins(later(seconds=11)) == 0
    assert Alert.objects.get().mailed_at is None  # it waits for an admin
    EmailAddress.objects.filter(email="nina@example.org").update(verified=True)
    assert alerts.mail_admins(later(seconds=12)) == 1
    assert mailed() == [("nina@example.org", 1)]


def test_an_alert_that_closed_before_its_mail_is_not_mailed(admin: User) -> None:
    open_alert("pool_unreachable")
    close_alert("pool_unreachable")
    assert alerts.mail_admins(later(seconds=11)) == 0
    open_alert("pool_unreachable")
    alerts.mail_admins(later(seconds=11))
    close_alert("pool_unreachable")
    outbox.send_due()
    assert Mail.objects.get().state == "cancelled"


def test_the_mail_in_both_languages(admin: User, replica: Replica, mailbox: SmtpServer) -> None:
    open_alert("replica_down", replica=replica, detail="gpu_memory")
    alerts.mail_admins(later(seconds=11))
    mail = Mail.objects.get()
    message = letters.compose(mail)
    well_written(message, "en")
    assert message.subject == "Alert: A replica is down and out of the pool."
    assert "replica gpu-1:8101 of nan" in message.body
    assert "The GPU's memory is too small or held by something else." in message.body
    assert f"http://127.0.0.1:8000/staff/replicas/{replica.pk}/" in message.body
    mail.language = "es"
    well_written(letters.compose(mail), "es")
    assert outbox.send_due() == 1


def test_a_failed_probe_in_words_that_members_read_with_the_page_of_the_probes(
    replica: Replica,
) -> None:
    calls = "tools (smoke_tool_call_lost), cancel (probe_slot_taken), long_conte"
    open_alert("probe_failed", slot=replica.slot, detail=f"small: {calls}")
    with translation.override("en"):
        said = alerts.in_words(Alert.objects.get())
    assert said.detail == (
        "small · A tool call: tool calls get lost or come broken"
        " · Leaving in the middle: a call that was left in the middle keeps its place"
    )
    assert said.link == "http://127.0.0.1:8000/staff/probes/"
    with translation.override("es"):
        assert "Una llamada a una herramienta: " in alerts.in_words(Alert.objects.get()).detail


def test_who_is_no_longer_an_admin_gets_no_mail(admin: User) -> None:
    open_alert("pool_unreachable")
    alerts.mail_admins(later(seconds=11))
    User.objects.update(is_staff=False)
    outbox.send_due()
    assert Mail.objects.get().state == "cancelled"


# -- The webhook ------------------------------------------------------------------------------
def test_the_webhook_hears_of_both_ends_once(
    hook: FakeWebhook, replica: Replica, settings: Settings
) -> None:
    settings.LANGUAGE_CODE = "en"
    open_alert("replica_down", replica=replica, detail="killed")
    row = Alert.objects.get()
    assert [alerts.call_webhook() for _ in range(2)] == [1, 0]
    assert hook.heard == [
        {
            "text": "Alert: A replica is down and out of the pool. · replica gpu-1:8101 of nan · "
            "The engine was killed from outside.",
            "code": "replica_down",
            "about": "replica gpu-1:8101 of nan",
            "since": row.opened_at.isoformat(),
            "url": f"http://127.0.0.1:8000/staff/replicas/{replica.pk}/",
            "state": "open",
        }
    ]
    close_alert("replica_down", replica=replica)
    assert [alerts.call_webhook() for _ in range(2)] == [1, 0]
    assert hook.states() == [("replica_down", "open"), ("replica_down", "closed")]


def test_the_webhook_is_tried_again_with_pauses(hook: FakeWebhook) -> None:
    hook.status = 503
    open_alert("pool_unreachable")
    assert alerts.call_webhook() == 0
    assert alerts.call_webhook(later(seconds=10)) == 0  # not before its time
    assert len(hook.heard) == 1
    alerts.call_webhook(later(seconds=20))
    assert len(hook.heard) == 2
    hook.status = 200
    assert alerts.call_webhook(later(minutes=5)) == 1
    close_alert("pool_unreachable")
    assert alerts.call_webhook(later(minutes=5)) == 1
    assert [state for _, state in hook.states()] == ["open", "open", "open", "closed"]


@pytest.mark.parametrize("status", [400, 404, 302])
def test_a_refusal_for_good_is_not_repeated(hook: FakeWebhook, status: int) -> None:
    hook.status = status
    open_alert("pool_unreachable")
    alerts.call_webhook()
    alerts.call_webhook(later(hours=2))
    assert len(hook.heard) == 1


def test_what_may_have_arrived_is_not_sent_again(hook: FakeWebhook) -> None:
    hook.status = 0
    open_alert("pool_unreachable")
    alerts.call_webhook()
    alerts.call_webhook(later(hours=2))
    assert len(hook.heard) == 1


def test_what_nobody_heard_of_ends_quietly(hook: FakeWebhook) -> None:
    hook.status = 503
    open_alert("pool_unreachable")
    alerts.call_webhook()
    hook.heard.clear()
    close_alert("pool_unreachable")
    alerts.call_webhook(later(hours=2))
    assert hook.heard == []


def test_a_webhook_that_is_away_costs_little_and_its_address_is_in_no_log(
    settings: Settings, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with FakeWebhook() as gone:
        settings.ALERT_WEBHOOK_URL = gone.url
    open_alert("pool_unreachable")
    began = timezone.now()
    assert alerts.call_webhook() == 0
    assert timezone.now() - began < timedelta(seconds=3)
    said = "".join(capfd.readouterr()) + caplog.text
    assert "webhook_not_delivered" in said
    assert "not-to-be-logged" not in said
    assert Alert.objects.get().hooked == ""


@pytest.mark.parametrize(
    ("address", "problem"), [("nonsense", NotDelivered), ("http://[::1", NotDelivered)]
)
def test_an_address_that_is_none(address: str, problem: type[Exception]) -> None:
    with Webhook(address) as hook, pytest.raises(problem) as found:
        hook.post({"text": "x"})
    assert found.value.__cause__ is None
    assert address not in str(found.value)


def test_a_webhook_that_hangs_is_given_up(hook: FakeWebhook) -> None:
    hook.seconds = 1
    with Webhook(hook.url, timeout=QUICK) as client, pytest.raises(Unsure):
        client.post({"text": "x"})


def test_no_webhook_is_no_work(settings: Settings) -> None:
    settings.ALERT_WEBHOOK_URL = ""
    open_alert("pool_unreachable")
    assert alerts.call_webhook() == 0
