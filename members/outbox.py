"""Sending what is in the outbox: at most once, whatever happens.

A mail that the server may or may not have accepted is never sent again by itself: it becomes
`unsure`, and an admin decides.
"""

import smtplib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import structlog
from allauth.account.forms import default_token_generator
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.db.models import F, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation

from inference.models import PublicName
from inference.names.changes import changes
from members import alerts
from members.models import Ballot, Decision, Mail, Proposal, Vote
from members.voting import ratify, receipts, results, rounds

log = structlog.get_logger(__name__)

SEND_SECONDS = 120
"""Longer than any attempt takes: a row in `sending` for more than this has lost its worker."""
SWEEP_SECONDS = 12
"""So that the sweep, with one last slow attempt, stays under half a minute."""
KEEP_DAYS = 90
BACK_OFF_SECONDS = (30, 60, 120, 300, 900, 1800, 3600)


class Obsolete(Exception):
    """What the mail would say is no longer true."""


class Unreachable(Exception):
    """The server could not be reached; nothing was handed over."""


# -- What each mail needs beyond its row; links are made here and kept nowhere ----------------
def _link(name: str, *args: Any) -> str:
    return settings.SITE_URL + reverse(name, args=args)


def _confirm(mail: Mail) -> dict[str, Any]:
    address = EmailAddress.objects.filter(pk=mail.params["address"], verified=False).first()
    if address is None:
        raise Obsolete
    return {"link": _link("account_confirm_email", EmailConfirmationHMAC(address).key)}


def _new_address(mail: Mail) -> dict[str, Any]:
    """Says whose account wants the address; the reader may be somebody else."""
    if mail.user is None:
        raise Obsolete
    return {**_confirm(mail), "account": masked(mail.user.email)}


def masked(email: str) -> str:
    """Enough for its owner to know it, and little for anybody else: n…@example.org."""
    name, _at, host = email.rpartition("@")
    return f"{name[:1]}…@{host}"


def _place_ready(mail: Mail) -> dict[str, Any]:
    address = EmailAddress.objects.filter(user_id=mail.user_id, verified=False).first()
    if address is None:
        raise Obsolete
    return {"link": _link("account_confirm_email", EmailConfirmationHMAC(address).key)}


def _reset(mail: Mail) -> dict[str, Any]:
    user = mail.user
    if user is None or not user.is_active:
        raise Obsolete
    uid, key = user_pk_to_url_str(user), default_token_generator.make_token(user)
    path = reverse("account_reset_password_from_key", kwargs={"uidb36": "U", "key": "K"})
    return {"link": settings.SITE_URL + path.replace("U-K", f"{uid}-{key}")}


def _account_exists(mail: Mail) -> dict[str, Any]:
    return {"login": _link("account_login"), "link": _link("account_reset_password")}


def _decided(mail: Mail) -> dict[str, Any]:
    decision = Decision.objects.select_related("application").get(pk=mail.params["decision"])
    if decision.undone_at:
        raise Obsolete
    return {"decision": decision, "link": _link("waitlist")}


def _reason(mail: Mail) -> dict[str, Any]:
    return {"reason": mail.params.get("reason", ""), "link": _link("home")}


def _name(mail: Mail) -> dict[str, Any]:
    """Not if the model came back or went for good meanwhile, or the reader is no member now."""
    names = PublicName.objects.live().exclude(slot__model=None)
    name = names.select_related("slot__model", "model").filter(pk=mail.params["name"]).first()
    if name is None or name.retire_at is None or name.model is None or name.slot.model is None:
        raise Obsolete
    if name.retire_at.isoformat() != mail.params["last_day"] or not (
        mail.user and mail.user.is_member
    ):
        raise Obsolete
    return {
        "name": name,
        "slot": name.slot,
        "old": name.model,
        "new": name.slot.model,
        "changes": changes(name.model, name.slot.model),
        "link": _link("key"),
    }


def _security(mail: Mail) -> dict[str, Any]:
    return {"what": mail.params["what"], "link": _link("account_reset_password")}


def _proposal(mail: Mail) -> dict[str, Any]:
    proposal = Proposal.objects.filter(pk=mail.params["proposal"]).first()
    if proposal is None or proposal.state != Proposal.State.DECLINED:
        raise Obsolete
    return {"proposal": proposal, "link": f"{settings.SITE_URL}/vote/"}


def _vote(mail: Mail) -> dict[str, Any]:
    """For whoever is a member now."""
    vote = Vote.objects.select_related("slot", "swap").filter(pk=mail.params["vote"]).first()
    if vote is None or not (mail.user and mail.user.is_member):
        raise Obsolete
    return {"vote": vote, "link": f"{settings.SITE_URL}/vote/{vote.slug}/"}


def _vote_opened(mail: Mail) -> dict[str, Any]:
    context = _vote(mail)
    vote = context["vote"]
    if not rounds.taking_ballots(vote):
        raise Obsolete
    return {**context, "options": list(vote.candidates.all())}


def _vote_receipt(mail: Mail) -> dict[str, Any]:
    """Until the close; then nobody knows any more which ballot was hers."""
    context = _vote(mail)
    ballot = Ballot.objects.filter(vote=context["vote"], voter__user=mail.user).first()
    if ballot is None:
        raise Obsolete
    return {**context, "words": receipts.words(ballot.receipt, mail.language)}


def _vote_result(mail: Mail) -> dict[str, Any]:
    context = _vote(mail)
    vote = context["vote"]
    link = f"{context['link']}result/"
    result = results.result(vote)
    return {**context, "result": result, "verdict": results.verdict(vote), "link": link}


def _vote_planned(mail: Mail) -> dict[str, Any]:
    """Not if the plan was given up meanwhile."""
    context = _vote(mail)
    vote = context["vote"]
    if vote.swap is None or vote.swap.state not in ratify.CONFIRMED:
        raise Obsolete
    swap = vote.swap
    return {
        **context,
        "swap": swap,
        "changes": changes(swap.from_model, swap.to_model),
        "announcement": ratify.announcement(vote, mail.language),
        "link": f"{settings.SITE_URL}/vote/",
    }


def _alerts(mail: Mail) -> dict[str, Any]:
    """Those that are still open, if the reader is still an admin."""
    found = alerts.told(mail.params["alerts"])
    if not found or not (mail.user and mail.user.is_active and mail.user.is_staff):
        raise Obsolete
    return {"alerts": found, "link": _link("staff_home")}


CONTEXT: dict[str, Callable[[Mail], dict[str, Any]]] = {
    Mail.Kind.CONFIRM: _confirm,
    Mail.Kind.NEW_ADDRESS: _new_address,
    Mail.Kind.ACCOUNT_EXISTS: _account_exists,
    Mail.Kind.RESET: _reset,
    Mail.Kind.SECURITY: _security,
    Mail.Kind.WELCOME: lambda mail: {"link": _link("key")},
    Mail.Kind.PLACE_READY: _place_ready,
    Mail.Kind.REJECTED: _decided,
    Mail.Kind.QUESTION: _decided,
    Mail.Kind.SUSPENDED: _reason,
    Mail.Kind.REINSTATED: _reason,
    Mail.Kind.ROTATION_DONE: _name,
    Mail.Kind.NAME_RETIRES: _name,
    Mail.Kind.PROPOSAL_DECLINED: _proposal,
    Mail.Kind.VOTE_OPENED: _vote_opened,
    Mail.Kind.VOTE_RECEIPT: _vote_receipt,
    Mail.Kind.VOTE_RESULT: _vote_result,
    Mail.Kind.VOTE_PLANNED: _vote_planned,
    Mail.Kind.ALERTS: _alerts,
}


def compose(mail: Mail) -> EmailMultiAlternatives:
    """Writes the mail in its language. Raises Obsolete when it should not go out any more."""
    with translation.override(mail.language or settings.LANGUAGE_CODE):
        context = {
            "mail": mail,
            "user": mail.user,
            "SITE_URL": settings.SITE_URL,
            "CONTACT_EMAIL": settings.CONTACT_EMAIL,
            **CONTEXT[mail.kind](mail),
        }
        subject, text, html = (
            render_to_string(f"emails/{mail.kind}.{part}", context).strip()
            for part in ("subject.txt", "txt", "html")
        )
    host = urlsplit(settings.SITE_URL).hostname or "localhost"
    message = EmailMultiAlternatives(
        " ".join(subject.split()),
        text + "\n",
        to=[mail.to],
        headers={"Message-ID": f"<{mail.message_id}@{host}>", "Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(html, "text/html")
    return message


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
