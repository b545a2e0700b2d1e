"""What each mail says: its words are in templates/emails/, what they need is read while sending.

Links are made here and kept nowhere, from SITE_URL alone.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from allauth.account.forms import default_token_generator
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation

from inference.models import PublicName
from inference.names.changes import changes
from members import alerts
from members.models import Ballot, Decision, Mail, Proposal, Vote
from members.voting import ratify, receipts, results, rounds

EMPTY_LINES = re.compile(r"\n{3,}")
"""What parts of a text leave behind that have nothing to say."""


class Obsolete(Exception):
    """What the mail would say is no longer true."""


def _link(name: str, *args: Any) -> str:
    return settings.SITE_URL + reverse(name, args=args)


def _confirm(mail: Mail) -> dict[str, Any]:
    return _to_confirm(pk=mail.params["address"])


def _to_confirm(**which: Any) -> dict[str, Any]:
    address = EmailAddress.objects.filter(verified=False, **which).first()
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
    return _to_confirm(user_id=mail.user_id)


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
    return {"proposal": proposal, "link": _link("vote_index")}


def _vote(mail: Mail) -> dict[str, Any]:
    """For whoever is a member now."""
    vote = Vote.objects.select_related("slot", "swap").filter(pk=mail.params["vote"]).first()
    if vote is None or not (mail.user and mail.user.is_member):
        raise Obsolete
    return {"vote": vote, "link": _link("vote_ballot", vote.slug)}


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
    return {
        **context,
        "result": results.result(vote),
        "verdict": results.verdict(vote),
        "link": _link("vote_result", vote.slug),
    }


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
        "link": _link("vote_index"),
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
        EMPTY_LINES.sub("\n\n", text) + "\n",
        to=[mail.to],
        headers={"Message-ID": f"<{mail.message_id}@{host}>", "Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(html, "text/html")
    return message
