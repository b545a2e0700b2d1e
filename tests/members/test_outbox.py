"""Mail goes out at most once, late if it must, and never stops an approval."""

import os
import subprocess
import sys
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.core.mail import EmailMultiAlternatives
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from inference.models import Server
from members import letters, mails, outbox, tasks, waitlist
from members.models import Application, Mail, User
from nan.celery import app
from tests.fakes.smtp import SmtpServer
from tests.people import applicant, let_in, person, signed_in, staff
from tests.waiting import at_once, wait_until

pytestmark = pytest.mark.django_db


def due_now() -> None:
    Mail.objects.filter(state="due").update(due_at=timezone.now())


# -- W3: the mail server is down --------------------------------------------------------------
def test_w3_a_mail_server_that_is_down_delays_the_mail_only(
    waiting: Application, admin: User, seats: Server, no_wait: None, mailbox: SmtpServer
) -> None:
    mailbox.stop()
    page = signed_in(admin).post(
        "/staff/waitlist/decide/", {"application": waiting.pk, "action": "approve"}, follow=True
    )
    assert page.status_code == 200
    assert User.objects.get(pk=waiting.user_id).is_member
    assert outbox.send_due() == 0
    mail = Mail.objects.get()
    assert (mail.state, mail.error, mail.attempts) == ("due", "unreachable", 1)
    assert mail.due_at > timezone.now()
    assert "could not be reached" in signed_in(admin).get("/staff/").content.decode()

    mailbox.start()
    assert outbox.send_due() == 0  # not before its time
    due_now()
    assert outbox.send_due() == 1
    assert outbox.send_due() == 0
    assert [mail["To"] for mail in mailbox.mails] == ["wanda@example.org"]


def test_one_attempt_is_enough_to_see_that_the_server_is_away(
    admin: User, seats: Server, no_wait: None, mailbox: SmtpServer
) -> None:
    for n in range(5):
        let_in(applicant(f"P{n}"), by=admin)
    mailbox.stop()
    outbox.send_due()
    assert list(Mail.objects.order_by("-attempts").values_list("attempts", flat=True)) == [
        1,
        0,
        0,
        0,
        0,
    ]
    mailbox.start()
    due_now()
    assert outbox.send_due() == 5


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [("later", ("due", "later")), ("never", ("failed", "refused"))],
)
def test_what_the_server_answers_is_believed(
    behave: str, outcome: tuple[str, str], outsider: User, mailbox: SmtpServer
) -> None:
    mailbox.behave = behave
    mails.reset_password(outsider)
    outbox.send_due()
    mail = Mail.objects.get()
    assert (mail.state, mail.error) == outcome


# -- Never twice ------------------------------------------------------------------------------
def test_a_lost_answer_is_unsure_and_only_an_admin_sends_again(
    outsider: User, admin: User, mailbox: SmtpServer
) -> None:
    mailbox.behave = "drop"
    mails.reset_password(outsider)
    outbox.send_due()
    outbox.send_due()
    mail = Mail.objects.get()
    assert (mail.state, mail.error, len(mailbox.mails)) == ("unsure", "interrupted", 1)
    mailbox.behave = "accept"
    signed_in(admin).post("/staff/mails/retry/", {"mail": mail.pk})
    outbox.send_due()
    first, second = mailbox.mails
    assert first["Message-ID"] == second["Message-ID"]


def test_a_worker_killed_while_sending_leaves_it_unsure(
    outsider: User, mailbox: SmtpServer
) -> None:
    mails.reset_password(outsider)
    # As the killed worker left it: claimed, accepted by the server perhaps, outcome not noted.
    Mail.objects.update(state="sending", claimed_at=timezone.now())
    tasks.send_mail(str(Mail.objects.get().message_id))  # the broker delivers the message again
    outbox.send_due()
    assert Mail.objects.get().state == "sending"
    Mail.objects.update(claimed_at=timezone.now() - timedelta(seconds=outbox.SEND_SECONDS + 1))
    outbox.send_due()
    assert (Mail.objects.get().state, mailbox.mails) == ("unsure", [])


@pytest.mark.django_db(transaction=True)
def test_a_process_killed_after_the_server_took_the_mail(mailbox: SmtpServer) -> None:
    mailbox.behave = "hang"
    mails.reset_password(person("Otto"))
    message_id = str(Mail.objects.get().message_id)
    code = (
        f"import django; django.setup(); from members import tasks; tasks.send_mail({message_id!r})"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], env=worker_environment(mailbox.port))
    wait_until(lambda: mailbox.mails, seconds=30, every=0.05)
    worker.kill()
    worker.wait()
    mailbox.behave = "accept"
    tasks.send_mail(message_id)
    Mail.objects.update(claimed_at=timezone.now() - timedelta(seconds=outbox.SEND_SECONDS + 1))
    outbox.send_due()
    outbox.send_due()
    assert (Mail.objects.get().state, len(mailbox.mails)) == ("unsure", 1)


def worker_environment(port: int) -> dict[str, str]:
    name = connection.settings_dict["NAME"]
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "nan.settings",
        "DATABASE_URL": url,
        "EMAIL_URL": f"smtp://127.0.0.1:{port}",
    }


@pytest.mark.django_db(transaction=True)
def test_delivered_twice_is_sent_once(mailbox: SmtpServer) -> None:
    mails.reset_password(person("Otto"))
    message_id = str(Mail.objects.get().message_id)
    at_once([lambda: tasks.send_mail(message_id)] * 5)
    assert (len(mailbox.mails), Mail.objects.get().state) == (1, "sent")


def test_undone_before_it_went_out(
    waiting: Application, admin: User, seats: Server, mailbox: SmtpServer
) -> None:
    let_in(waiting, by=admin)
    assert outbox.send_due() == 0  # it can still be undone
    waitlist.undo(decisions=[d.pk for d in waiting.decisions.all()], actor=admin)
    due_now()
    outbox.send_due()
    assert mailbox.mails == []


def test_a_link_to_what_is_confirmed_meanwhile_is_not_sent(
    outsider: User, mailbox: SmtpServer
) -> None:
    mails.confirm(outsider.emailaddress_set.get())
    outbox.send_due()
    assert (Mail.objects.get().state, mailbox.mails) == ("cancelled", [])


# -- K12: nothing is published that did not happen --------------------------------------------
def queued() -> int:
    with app.connection_for_read() as broker:
        return int(broker.default_channel.client.llen("default"))


@pytest.mark.django_db(transaction=True)
def test_k12_a_rolled_back_request_leaves_no_row_and_no_message() -> None:
    user, before = person("Otto"), queued()
    with transaction.atomic():
        mails.reset_password(user)
        transaction.set_rollback(True)
    assert (Mail.objects.count(), queued()) == (0, before)
    with transaction.atomic():
        mails.reset_password(user)
        assert queued() == before  # not before the commit
    assert (Mail.objects.count(), queued()) == (1, before + 1)


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_down_breaks_nothing(
    mailbox: SmtpServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    user = person("Otto")
    with monkeypatch.context() as broken:
        broken.setattr(app.conf, "broker_url", "redis://127.0.0.1:1/0")
        broken.setattr(app.amqp, "_producer_pool", None)  # of connections to where it was
        mails.reset_password(user)
    assert "Connection refused" in caplog.text
    assert outbox.send_due() == 1
    before = queued()
    mails.reset_password(person("Paula"))
    assert queued() == before + 1


@pytest.mark.django_db(transaction=True)
def test_k12_fifty_approvals_leave_nothing_behind(mailbox: SmtpServer, no_wait: None) -> None:
    Server.objects.create(name="gpu-1", seats=100)
    admin = staff("Alma")
    rows = [applicant(f"P{n}").pk for n in range(50)]
    waitlist.approve(applications=rows, actor=admin)
    for message_id in Mail.objects.values_list("message_id", flat=True):
        tasks.send_mail(str(message_id))
    assert set(Mail.objects.values_list("state", flat=True)) == {"sent"}
    assert len(mailbox.mails) == 50


# -- What is in a mail ------------------------------------------------------------------------
def test_links_are_made_while_sending_and_kept_nowhere(outsider: User, mailbox: SmtpServer) -> None:
    mails.reset_password(outsider)
    outbox.send_due()
    text = mailbox.mails[0].get_body(("plain",)).get_content()
    token = text.split("/password/reset/key/")[1].split("/")[0].split("-", 1)[1]
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" t WHERE position(%s in t::text) > 0', [token]
            )
            assert (table, cursor.fetchone()[0]) == (table, 0)


# Told of rows that this file knows nothing of; their own files call `well_written`.
ELSEWHERE = {
    "rotation_done", "name_retires", "proposal_declined",
    "vote_opened", "vote_receipt", "vote_result", "vote_planned", "alerts",
}  # fmt: skip


@pytest.mark.parametrize("language", ["es", "en"])
@pytest.mark.parametrize("kind", [kind for kind in Mail.Kind.values if kind not in ELSEWHERE])
def test_every_mail_can_be_written(
    kind: str, language: str, waiting: Application, admin: User
) -> None:
    waiting.user.emailaddress_set.update(verified=False)
    decision = waitlist.reject(
        applications=[waiting.pk], actor=admin, reason_code="other", reason="<b>R&D</b>"
    ).decisions[0]
    mail = Mail(
        kind=kind,
        user=waiting.user,
        to=waiting.user.email,
        language=language,
        params={
            "address": waiting.user.emailaddress_set.get().pk,
            "decision": decision.pk,
            "what": "totp_on",
            "reason": "<b>R&D</b>",
        },
    )
    well_written(letters.compose(mail), language)


def well_written(message: EmailMultiAlternatives, language: str) -> None:
    """One line of subject, its language, plain text as typed, and HTML that loads nothing."""
    html = message.alternatives[0].content
    assert "\n" not in message.subject
    assert f'<html lang="{language}">' in html
    assert "<b>" not in html
    assert "&amp;" not in message.body
    assert "\n\n\n" not in message.body
    assert not any(word in html for word in ("<img", "<link", "url(", "<script"))


def test_old_mails_are_forgotten(outsider: User) -> None:
    mails.reset_password(outsider)
    Mail.objects.update(state="sent", created_at=timezone.now() - timedelta(days=91))
    assert outbox.forget_old() == 1


def test_retry_from_the_command_line(
    outsider: User, mailbox: SmtpServer, capsys: pytest.CaptureFixture[str]
) -> None:
    mailbox.behave = "never"
    mails.reset_password(outsider)
    outbox.send_due()
    call_command("mails", "retry", "--json")
    assert capsys.readouterr().out.strip() == '{"again": 1}'
    mailbox.behave = "accept"
    assert outbox.send_due() == 1
