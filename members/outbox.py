"""Sending what is in the outbox: at most once, whatever happens.

A mail that the server may or may not have accepted is never sent again by itself: it becomes
`unsure`, and an admin decides.
"""

import smtplib
import time
from datetime import timedelta
from typing import Any

import structlog
from django.core.mail import EmailMultiAlternatives, get_connection
from django.db.models import F, QuerySet
from django.utils import timezone

from members.letters import Obsolete, compose
from members.models import Mail

log = structlog.get_logger(__name__)

SEND_SECONDS = 120
"""Longer than any attempt takes: a row in `sending` for more than this has lost its worker."""
SWEEP_SECONDS = 12
"""So that the sweep, with one last slow attempt, stays under half a minute."""
KEEP_DAYS = 90
BACK_OFF_SECONDS = (30, 60, 120, 300, 900, 1800, 3600)


class Unreachable(Exception):
    """The server could not be reached; nothing was handed over."""


# -- Sending ----------------------------------------------------------------------------------
def send(mail: Mail) -> Mail:
    """Sends one due mail, if nobody else is doing it; returns the row with its outcome."""
    now = timezone.now()
    claimed = Mail.objects.filter(pk=mail.pk, state=Mail.State.DUE, due_at__lte=now).update(
        state=Mail.State.SENDING, claimed_at=now, attempts=F("attempts") + 1
    )
    if claimed:
        _finish(mail, **_attempt(mail))
    mail.refresh_from_db()
    return mail


def _attempt(mail: Mail) -> dict[str, Any]:
    """Hands the mail to the server; returns the fields that record the outcome."""
    try:
        message = compose(mail)
    except Obsolete:
        return {"state": Mail.State.CANCELLED}
    except Exception:
        log.exception("mail_broken", mail=str(mail.message_id), kind=mail.kind)
        return {"state": Mail.State.FAILED, "error": "broken"}
    try:
        _hand_over(message)
    except Unreachable:
        return _again(mail, "unreachable")
    except smtplib.SMTPResponseException as refusal:
        return _refused(mail, refusal.smtp_code)
    except smtplib.SMTPRecipientsRefused as refusal:
        return _refused(mail, min(code for code, _text in refusal.recipients.values()))
    except (smtplib.SMTPException, OSError) as error:
        log.warning("mail_unsure", mail=str(mail.message_id), error=type(error).__name__)
        return {"state": Mail.State.UNSURE, "error": "interrupted"}
    return {"state": Mail.State.SENT, "sent_at": timezone.now(), "error": ""}


def _hand_over(message: EmailMultiAlternatives) -> None:
    """Connecting is apart from sending: a failure before the first command is no doubt at all."""
    connection = get_connection()
    try:
        connection.open()
    except (smtplib.SMTPException, OSError) as error:
        log.warning("mail_server_unreachable", error=type(error).__name__)
        raise Unreachable from error
    try:
        connection.send_messages([message])
    finally:
        connection.close()


def _refused(mail: Mail, code: int) -> dict[str, Any]:
    if 400 <= code < 500:
        return _again(mail, "later")
    log.warning("mail_refused", mail=str(mail.message_id), code=code)
    return {"state": Mail.State.FAILED, "error": "refused"}


def _again(mail: Mail, error: str) -> dict[str, Any]:
    wait = BACK_OFF_SECONDS[min(mail.attempts, len(BACK_OFF_SECONDS) - 1)]
    due_at = timezone.now() + timedelta(seconds=wait)
    return {"state": Mail.State.DUE, "error": error, "due_at": due_at}


def _finish(mail: Mail, **outcome: Any) -> None:
    Mail.objects.filter(pk=mail.pk, state=Mail.State.SENDING).update(**outcome)


# -- The sweep, and what admins can do --------------------------------------------------------
def send_due(*, seconds: float = SWEEP_SECONDS) -> int:
    """Sends what is due, oldest first, for at most `seconds`; stops when the server is away."""
    mark_interrupted()
    deadline = time.monotonic() + seconds
    sent = 0
    while time.monotonic() < deadline:
        mail = _next_due()
        if mail is None:
            break
        mail = send(mail)
        sent += mail.state == Mail.State.SENT
        if mail.error == "unreachable":
            break
    return sent


def _next_due() -> Mail | None:
    due = Mail.objects.filter(state=Mail.State.DUE, due_at__lte=timezone.now())
    return due.select_related("user").order_by("due_at").first()


def mark_interrupted() -> int:
    """A worker died between taking a mail and noting the outcome: nobody knows if it went out."""
    lost = timezone.now() - timedelta(seconds=SEND_SECONDS)
    return Mail.objects.filter(state=Mail.State.SENDING, claimed_at__lt=lost).update(
        state=Mail.State.UNSURE, error="interrupted"
    )


def forget_old() -> int:
    """Addresses and texts are not kept longer than needed to answer "did you write to me?"."""
    old = timezone.now() - timedelta(days=KEEP_DAYS)
    finished = [Mail.State.SENT, Mail.State.CANCELLED, Mail.State.FAILED]
    return Mail.objects.filter(state__in=finished, created_at__lt=old).delete()[0]


def retry(mails: QuerySet[Mail]) -> int:
    """An admin sends again what failed, is unsure, or waits for its next attempt."""
    again = [Mail.State.FAILED, Mail.State.UNSURE, Mail.State.DUE]
    return mails.filter(state__in=again).update(
        state=Mail.State.DUE, due_at=timezone.now(), error="", attempts=0
    )
