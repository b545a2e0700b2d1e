"""The outbox: a row is a mail to be sent."""

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class Mail(models.Model):
    """One mail to one person.

        due → sending → sent
         │       ├─→ due      the server was away or said "later": again after a while
         │       ├─→ failed   the server refused it for good
         │       └─→ unsure   we can't know whether it went out; sent again only by an admin
         └─→ cancelled        undone, or no longer true

    A link with a token is never stored here: it is made while sending, from the ids in `params`.
    """

    class State(models.TextChoices):
        DUE = "due", _("to be sent")
        SENDING = "sending", _("being sent")
        SENT = "sent", _("sent")
        CANCELLED = "cancelled", _("cancelled")
        FAILED = "failed", _("refused")
        UNSURE = "unsure", _("perhaps sent")

    TRANSITIONS: ClassVar[dict[str, tuple[str, ...]]] = {
        State.DUE: (State.SENDING, State.CANCELLED),
        State.SENDING: (State.SENT, State.DUE, State.FAILED, State.UNSURE, State.CANCELLED),
        State.SENT: (),
        State.CANCELLED: (),
        State.FAILED: (State.DUE,),
        State.UNSURE: (State.DUE,),
    }

    class Kind(models.TextChoices):
        CONFIRM = "confirm", _("confirm your address")
        NEW_ADDRESS = "new_address", _("confirm your new address")
        ACCOUNT_EXISTS = "account_exists", _("you already have an account")
        RESET = "reset", _("set a new password")
        SECURITY = "security", _("something changed in your account")
        WELCOME = "welcome", _("welcome")
        PLACE_READY = "place_ready", _("a seat is waiting: confirm your address")
        REJECTED = "rejected", _("your application was not accepted")
        QUESTION = "question", _("we have a question")
        SUSPENDED = "suspended", _("suspended")
        REINSTATED = "reinstated", _("reinstated")
        ROTATION_DONE = "rotation_done", _("another model")
        NAME_RETIRES = "name_retires", _("a model's name is retired")
        PROPOSAL_DECLINED = "proposal_declined", _("your proposal was declined")
        VOTE_OPENED = "vote_opened", _("a vote is open")
        VOTE_RECEIPT = "vote_receipt", _("your receipt")
        VOTE_RESULT = "vote_result", _("a vote is closed")
        VOTE_PLANNED = "vote_planned", _("the date of a rotation")
        ALERTS = "alerts", _("something needs a look")

    ERRORS: ClassVar[dict[str, Any]] = {
        "unreachable": _("The mail server could not be reached."),
        "later": _("The mail server asked to try again later."),
        "refused": _("The mail server refused this mail."),
        "interrupted": _("Sending was interrupted: it may or may not have gone out."),
        "broken": _("The mail could not be written; see the log."),
    }

    message_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        related_name="mails",
        verbose_name=_("to"),
    )
    to = models.EmailField(_("address"))
    kind = models.CharField(_("kind"), max_length=20, choices=Kind.choices)
    language = models.CharField(_("language"), max_length=5)
    params = models.JSONField(default=dict, blank=True)
    dedupe = models.CharField(max_length=200, unique=True, editable=False)
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.DUE)
    due_at = models.DateTimeField(_("due"), default=timezone.now)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    error = models.CharField(_("error"), max_length=20, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    claimed_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(_("sent at"), null=True, blank=True)

    class Meta:
        verbose_name = _("mail")
        verbose_name_plural = _("mails")
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["due_at"], condition=Q(state__in=["due", "sending"]), name="mails_to_send"
            ),
            models.Index(
                fields=["state"],
                condition=Q(state__in=["due", "sending", "failed", "unsure"]),
                name="mails_unfinished",
            ),
            models.Index(fields=["to", "kind", "created_at"], name="mails_by_address"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"

    @property
    def is_late(self) -> bool:
        return self.state == self.State.DUE and self.attempts > 0

    @property
    def error_text(self) -> str:
        return str(self.ERRORS.get(self.error, self.error))
