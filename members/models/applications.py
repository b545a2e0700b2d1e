"""What a person asks for, and what was decided about it."""

import uuid
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ApplicationQuerySet(models.QuerySet["Application"]):
    def waiting(self) -> "ApplicationQuerySet":
        return self.filter(state__in=Application.OPEN)

    def in_order(self) -> "ApplicationQuerySet":
        """First come first; an edit keeps the place, applying again gives a new one."""
        return self.order_by("pk")


class Application(models.Model):
    """One request to become a member.

    pending ⇄ needs_information
       ├──────────┴─→ approved    (an admin; back within the undo time)
       ├──────────┴─→ rejected    (an admin, with a reason; back within the undo time)
       └──────────┴─→ withdrawn   (she herself)
    """

    class State(models.TextChoices):
        PENDING = "pending", _("waiting")
        NEEDS_INFORMATION = "needs_information", _("has a question to answer")
        APPROVED = "approved", _("approved")
        REJECTED = "rejected", _("not accepted")
        WITHDRAWN = "withdrawn", _("withdrawn")

    OPEN = (State.PENDING, State.NEEDS_INFORMATION)
    TRANSITIONS: ClassVar[dict[str, tuple[str, ...]]] = {
        State.PENDING: (
            State.NEEDS_INFORMATION,
            State.APPROVED,
            State.REJECTED,
            State.WITHDRAWN,
        ),
        State.NEEDS_INFORMATION: (
            State.PENDING,
            State.APPROVED,
            State.REJECTED,
            State.WITHDRAWN,
        ),
        State.APPROVED: OPEN,
        State.REJECTED: OPEN,
        State.WITHDRAWN: (),
    }

    class Client(models.TextChoices):
        OPENCODE = "opencode", "opencode"
        CLAUDE_CODE = "claude-code", "Claude Code"
        CODEX = "codex", "Codex"
        CURSOR = "cursor", "Cursor"
        CLINE = "cline", "Cline"
        ZED = "zed", "Zed"
        AIDER = "aider", "Aider"
        CONTINUE = "continue", "Continue"
        OPEN_WEBUI = "open-webui", "Open WebUI"
        LANGCHAIN = "langchain", "LangChain"
        SDK = "sdk", _("OpenAI or Anthropic SDK")
        OTHER = "other", _("Another")

    class Tokens(models.TextChoices):
        """Tokens a day, in and out together, as she estimates it."""

        UNSURE = "unsure", _("I don't know yet")
        UNDER_1M = "under-1m", _("Under 1 million")
        TO_10M = "to-10m", _("1 to 10 million")
        TO_100M = "to-100m", _("10 to 100 million")
        OVER_100M = "over-100m", _("Over 100 million")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="applications",
        verbose_name=_("person"),
    )
    state = models.CharField(
        _("state"), max_length=20, choices=State.choices, default=State.PENDING
    )
    builds = models.TextField(_("what she builds"), max_length=2000)
    clients = ArrayField(
        models.CharField(max_length=20, choices=Client.choices),
        verbose_name=_("clients"),
        default=list,
        blank=True,
    )
    other_client = models.CharField(_("other client"), max_length=100, blank=True)
    tokens_per_day = models.CharField(
        _("tokens a day"), max_length=20, choices=Tokens.choices, default=Tokens.UNSURE
    )
    referred_by = models.CharField(_("who sent her"), max_length=120, blank=True)
    question = models.TextField(_("our question"), max_length=1000, blank=True)
    answer = models.TextField(_("her answer"), max_length=2000, blank=True)
    applied_at = models.DateTimeField(_("applied"), default=timezone.now)
    edited_at = models.DateTimeField(_("last edited"), null=True, blank=True)

    objects: ClassVar[models.Manager["Application"]] = ApplicationQuerySet.as_manager()

    class Meta:
        verbose_name = _("application")
        verbose_name_plural = _("applications")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(state__in=["pending", "needs_information"]),
                name="one_open_application_per_person",
            ),
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(state="approved"),
                name="one_approved_application_per_person",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["id"],
                condition=Q(state__in=["pending", "needs_information"]),
                name="applications_waiting",
            ),
            models.Index(fields=["state", "id"], name="applications_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.state}"

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN

    @property
    def client_names(self) -> list[str]:
        names = [str(self.Client(client).label) for client in self.clients if client != "other"]
        return [*names, self.other_client] if self.other_client else names


class DecisionQuerySet(models.QuerySet["Decision"]):
    def undoable(self, now: datetime | None = None) -> "DecisionQuerySet":
        return self.filter(
            undone_at=None,
            final_at__gt=now or timezone.now(),
            action__in=[Decision.Action.APPROVE, Decision.Action.REJECT],
        )


class Decision(models.Model):
    """Who decided what, when and why: never changed, except for being undone once."""

    class Action(models.TextChoices):
        APPROVE = "approve", _("approved")
        REJECT = "reject", _("rejected")
        ASK = "ask", _("asked")

    class Reason(models.TextChoices):
        """Templates for a rejection; the sentence is what she reads."""

        CAPACITY = "capacity", _("Our servers can't carry what you need for now.")
        UNCLEAR = "unclear", _("We could not tell from your application what you want to build.")
        NOT_A_FIT = "not-a-fit", _("What you describe does not fit a shared community server.")
        RESELLING = "reselling", _("Access can't be resold or passed on to others.")
        DUPLICATE = "duplicate", _("You already have an account with another address.")
        OTHER = "other", _("Another reason, in your own words")

    application = models.ForeignKey(
        Application, models.CASCADE, related_name="decisions", verbose_name=_("application")
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("decided by"),
    )
    action = models.CharField(_("decision"), max_length=10, choices=Action.choices)
    from_state = models.CharField(max_length=20, choices=Application.State.choices)
    to_state = models.CharField(max_length=20, choices=Application.State.choices)
    reason_code = models.CharField(_("reason"), max_length=20, choices=Reason.choices, blank=True)
    reason = models.TextField(_("in words"), max_length=1000, blank=True)
    batch = models.UUIDField(
        default=uuid.uuid4, editable=False, help_text=_("Decided together, undone together.")
    )
    at = models.DateTimeField(_("at"), default=timezone.now)
    final_at = models.DateTimeField(
        _("final at"), help_text=_("Until then it can be undone; then the mail goes out.")
    )
    undone_at = models.DateTimeField(_("undone at"), null=True, blank=True)
    undone_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("undone by"),
    )

    objects: ClassVar[models.Manager["Decision"]] = DecisionQuerySet.as_manager()

    class Meta:
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["final_at"], condition=Q(undone_at=None), name="decisions_open"),
            models.Index(fields=["batch"], name="decisions_by_batch"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.application_id}"

    @property
    def is_final(self) -> bool:
        return self.undone_at is None and self.final_at <= timezone.now()

    @property
    def reason_text(self) -> str:
        """What the person is told: the typed words, else the template's sentence."""
        if self.reason or self.reason_code in ("", self.Reason.OTHER):
            return self.reason
        return str(self.Reason(self.reason_code).label)
