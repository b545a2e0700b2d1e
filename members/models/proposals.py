"""What members want to run: proposals, and who seconds them."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.models import Slot
from inference.models.catalog import REPOSITORY


class ProposalQuerySet(models.QuerySet["Proposal"]):
    def open(self) -> "ProposalQuerySet":
        """Those that count for *at most three*: no admin has decided, and no vote is over."""
        return self.filter(state__in=Proposal.OPEN)

    def facts_due(self) -> "ProposalQuerySet":
        return self.filter(state__in=Proposal.OPEN, facts_due_at__isnull=False)


class Proposal(models.Model):
    """open → shortlisted → voted
    │         └→ open       taken off the ballot before it opened
    └→ declined | withdrawn
    """

    class State(models.TextChoices):
        OPEN = "open", pgettext_lazy("proposal", "open")
        SHORTLISTED = "shortlisted", pgettext_lazy("proposal", "on the ballot")
        VOTED = "voted", pgettext_lazy("proposal", "voted on")
        DECLINED = "declined", pgettext_lazy("proposal", "declined")
        WITHDRAWN = "withdrawn", pgettext_lazy("proposal", "withdrawn")

    OPEN: ClassVar[tuple[str, ...]] = (State.OPEN, State.SHORTLISTED)
    TRANSITIONS: ClassVar[dict[str, tuple[str, ...]]] = {
        State.OPEN: (State.SHORTLISTED, State.DECLINED, State.WITHDRAWN),
        State.SHORTLISTED: (State.OPEN, State.VOTED),
        State.VOTED: (),
        State.DECLINED: (),
        State.WITHDRAWN: (),
    }

    class FactsState(models.TextChoices):
        DUE = "due", pgettext_lazy("facts", "being looked up")
        KNOWN = "known", pgettext_lazy("facts", "looked up")
        FAILED = "failed", pgettext_lazy("facts", "not found")

    slot = models.ForeignKey(Slot, models.PROTECT, related_name="proposals")
    repo = models.CharField(_("repository"), max_length=200, validators=[REPOSITORY])
    reason = models.TextField(_("reason"), max_length=1000)
    proposer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="proposals"
    )
    proposed_at = models.DateTimeField(_("proposed"), default=timezone.now)
    state = models.CharField(_("state"), max_length=12, choices=State.choices, default=State.OPEN)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(_("decided"), null=True)
    decision_reason = models.TextField(_("reason of the decision"), max_length=1000, blank=True)
    facts_state = models.CharField(
        max_length=10, choices=FactsState.choices, default=FactsState.DUE
    )
    facts_due_at = models.DateTimeField(null=True, default=timezone.now)
    facts_attempts = models.PositiveSmallIntegerField(default=0)
    facts_error = models.CharField(max_length=40, blank=True)
    looked_up = models.JSONField(default=dict, blank=True)
    typed = models.JSONField(default=dict, blank=True)

    objects: ClassVar[models.Manager["Proposal"]] = ProposalQuerySet.as_manager()

    class Meta:
        verbose_name = _("proposal")
        verbose_name_plural = _("proposals")
        ordering: ClassVar[list[str]] = ["-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                "slot",
                Lower("repo"),
                condition=Q(state__in=["open", "shortlisted"]),
                name="one_open_proposal_per_model",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["facts_due_at"],
                condition=Q(facts_due_at__isnull=False),
                name="proposal_facts_due",
            ),
        ]

    def __str__(self) -> str:
        return self.repo

    @property
    def facts(self) -> dict[str, Any]:
        """What an admin typed stands over what was looked up. Keys: members.voting.facts."""
        return {**self.looked_up, **self.typed}

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN


class Second(models.Model):
    """A member wants this proposal too."""

    proposal = models.ForeignKey(Proposal, models.CASCADE, related_name="seconds")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="seconds")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = pgettext_lazy("proposal", "second")
        verbose_name_plural = pgettext_lazy("proposal", "seconds")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["proposal", "user"], name="one_second_each"),
        ]

    def __str__(self) -> str:
        return f"{self.proposal_id}"
