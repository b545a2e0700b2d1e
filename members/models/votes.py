"""Rows of votes: what is asked, who may answer, and the ballots before and after the close.

Postgres itself refuses what would change a vote that is open or over: see the triggers in
migration 0003.
"""

import uuid
from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.models import CatalogModel, Slot, Swap
from members.models.proposals import Proposal

SLUG = RegexValidator(
    r"^[A-Za-z0-9][A-Za-z0-9-]{0,39}\Z", _("At most 40 letters, digits and hyphens: 2026-Q4.")
)
KEEP = "keep"


class VoteQuerySet(models.QuerySet["Vote"]):
    def open(self) -> "VoteQuerySet":
        return self.filter(state=Vote.State.OPEN)

    def ahead(self) -> "VoteQuerySet":
        """Open, or to be opened at a time that is known; those that end first come first."""
        planned = Q(state=Vote.State.PREPARING, opens_at__isnull=False)
        return self.filter(planned | Q(state=Vote.State.OPEN)).order_by("closes_at")

    def over(self) -> "VoteQuerySet":
        return self.filter(state__in=(Vote.State.CLOSED, Vote.State.RATIFIED))

    def history(self) -> "VoteQuerySet":
        """All rounds that were counted, the latest first."""
        return self.over().order_by("-closes_at", "-pk")


class Vote(models.Model):
    """One round: which model is to run in a slot.

    preparing → open → closed → ratified
        └→ cancelled

    *closed* is counted, in the same transaction. Quorum missed or model kept: it stays closed.
    """

    class State(models.TextChoices):
        PREPARING = "preparing", pgettext_lazy("vote", "being prepared")
        OPEN = "open", pgettext_lazy("vote", "open")
        CLOSED = "closed", pgettext_lazy("vote", "closed")
        RATIFIED = "ratified", pgettext_lazy("vote", "ratified")
        CANCELLED = "cancelled", pgettext_lazy("vote", "cancelled")

    TRANSITIONS: ClassVar[dict[str, tuple[str, ...]]] = {
        State.PREPARING: (State.OPEN, State.CANCELLED),
        State.OPEN: (State.CLOSED,),
        State.CLOSED: (State.RATIFIED,),
        State.RATIFIED: (),
        State.CANCELLED: (),
    }

    class Kind(models.TextChoices):
        REGULAR = "regular", pgettext_lazy("vote", "regular")
        RECALL = "recall", pgettext_lazy("vote", "recall")

    slug = models.CharField(_("name"), max_length=40, unique=True, validators=[SLUG])
    slot = models.ForeignKey(Slot, models.PROTECT, related_name="votes")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.REGULAR)
    recalls = models.OneToOneField(
        Swap, models.PROTECT, null=True, blank=True, related_name="recall_vote"
    )
    state = models.CharField(
        _("state"), max_length=10, choices=State.choices, default=State.PREPARING
    )
    opens_at = models.DateTimeField(_("opens"), null=True, blank=True)
    closes_at = models.DateTimeField(_("closes"), null=True, blank=True)
    quorum_percent = models.PositiveSmallIntegerField(
        _("quorum (percent of the roll)"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
    )
    public_result = models.BooleanField(
        _("result shown to everybody"),
        default=False,
        help_text=_("The number of voters and the result, after the close; never the ballots."),
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    opened_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    opened_at = models.DateTimeField(_("opened"), null=True)
    roll_size = models.PositiveIntegerField(_("who may vote"), null=True)
    roll_digest = models.CharField(max_length=64, blank=True)
    closed_at = models.DateTimeField(_("counted"), null=True)
    ballots_digest = models.CharField(max_length=64, blank=True)
    result = models.JSONField(default=dict, blank=True)
    """See members.voting.results.Result; empty before the close."""
    ratified_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    ratified_at = models.DateTimeField(_("ratified"), null=True)
    swap = models.OneToOneField(Swap, models.PROTECT, null=True, related_name="ratified_vote")
    announcement_es = models.TextField(_("announcement in Spanish"), max_length=2000, blank=True)
    announcement_en = models.TextField(_("announcement in English"), max_length=2000, blank=True)
    announced_at = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager["Vote"]] = VoteQuerySet.as_manager()

    class Meta:
        verbose_name = pgettext_lazy("round", "vote")
        verbose_name_plural = pgettext_lazy("round", "votes")
        ordering: ClassVar[list[str]] = ["-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["slot"], condition=Q(state="open"), name="one_open_vote_per_slot"
            ),
            models.CheckConstraint(
                condition=~Q(state="open") | Q(closes_at__gt=F("opened_at"), roll_size__gt=0),
                name="open_vote_has_deadline_and_roll",
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_open(self) -> bool:
        """By its row; whether a ballot is still taken, only the database's clock says."""
        return self.state == self.State.OPEN

    @property
    def is_over(self) -> bool:
        return self.state in (self.State.CLOSED, self.State.RATIFIED)

    @property
    def waits(self) -> bool:
        """A recall that something holds up: it opens by itself after that, for its full length."""
        return self.kind == self.Kind.RECALL and self.state == self.State.PREPARING

    @property
    def codes(self) -> list[str]:
        """The options' names in ballots and files, in the order of the ballot."""
        return [candidate.code for candidate in self.candidates.all()]


class Candidate(models.Model):
    """An option on the ballot. What voters were told is copied here when the vote opens."""

    vote = models.ForeignKey(Vote, models.CASCADE, related_name="candidates")
    position = models.PositiveSmallIntegerField()
    code = models.CharField(max_length=200, editable=False)
    """`keep` for the current model, else the repository."""
    proposal = models.ForeignKey(
        Proposal, models.PROTECT, null=True, blank=True, related_name="candidates"
    )
    model = models.ForeignKey(
        CatalogModel, models.PROTECT, null=True, blank=True, related_name="candidates"
    )
    title = models.CharField(_("title"), max_length=200)
    repo = models.CharField(_("repository"), max_length=200)
    facts = models.JSONField(default=dict, blank=True)
    outlook = models.JSONField(default=dict, blank=True)
    """See members.voting.compare.Card."""

    class Meta:
        verbose_name = _("candidate")
        verbose_name_plural = _("candidates")
        ordering: ClassVar[list[str]] = ["position", "pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["vote", "code"], name="option_once_per_vote"),
            models.UniqueConstraint(fields=["vote", "position"], name="place_once_per_vote"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_current(self) -> bool:
        """It ran when the vote opened; whether it still does, says `runs_now`."""
        return self.code == KEEP

    @property
    def runs_now(self) -> bool:
        return self.model_id is not None and self.model_id == self.vote.slot.model_id


class Extension(models.Model):
    """A later deadline: asked by one admin, confirmed by another, before the old one."""

    vote = models.ForeignKey(Vote, models.CASCADE, related_name="extensions")
    closes_at = models.DateTimeField(_("new deadline"))
    reason = models.CharField(_("reason"), max_length=300)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    asked_at = models.DateTimeField(default=timezone.now)
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    confirmed_at = models.DateTimeField(null=True)
    closed_before = models.DateTimeField(_("deadline before"), null=True)

    class Meta:
        verbose_name = _("extension")
        verbose_name_plural = _("extensions")
        ordering: ClassVar[list[str]] = ["pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(confirmed_at=None)
                | Q(confirmed_by=None)
                | Q(asked_by=None)
                | ~Q(confirmed_by=F("asked_by")),
                name="extension_by_two_admins",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.vote_id}: {self.closes_at:%Y-%m-%d %H:%M}"


class RollEntry(models.Model):
    """She may vote in this round. Written once, at the opening; nothing here says whether she did.

    `user` becomes empty when a person is erased: the length of the roll stays.
    """

    vote = models.ForeignKey(Vote, models.CASCADE, related_name="roll")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="roll_entries"
    )

    class Meta:
        verbose_name = _("entry of the roll")
        verbose_name_plural = _("entries of the roll")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["vote", "user"], name="once_on_the_roll"),
        ]

    def __str__(self) -> str:
        return f"{self.vote_id}"


class Ballot(models.Model):
    """Linked to its voter so that she can change it, until the close erases the whole row.

    No foreign keys in the database: each would leave the number of the casting transaction on the
    row that it refers to, and that stays. No sequence either: it would count the ballots.
    """

    voter = models.OneToOneField(
        RollEntry, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="+"
    )
    vote = models.ForeignKey(Vote, models.DO_NOTHING, db_constraint=False, related_name="+")
    ranking = models.JSONField()
    """Groups of codes, best first, each group sorted."""
    receipt = models.BigIntegerField()
    receipt_shown = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["vote", "receipt"], name="receipt_once_per_vote"),
        ]

    def __str__(self) -> str:
        return f"{self.vote_id}"


class PublishedBallot(models.Model):
    """A counted ballot, without its voter. All of a round are written by one statement, shuffled,
    with random keys, so that their order on the disk tells nothing."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    vote = models.ForeignKey(Vote, models.PROTECT, related_name="ballots")
    receipt = models.BigIntegerField()
    ranking = models.JSONField()

    class Meta:
        verbose_name = _("ballot")
        verbose_name_plural = _("ballots")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["vote", "receipt"], name="published_receipt_once"),
        ]

    def __str__(self) -> str:
        return f"{self.vote_id}"


class RecallSignature(models.Model):
    """A member asks to vote again about a rotation."""

    swap = models.ForeignKey(Swap, models.CASCADE, related_name="recall_signatures")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="recall_signatures"
    )
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("signature for a recall")
        verbose_name_plural = _("signatures for a recall")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["swap", "user"], name="one_signature_each"),
        ]

    def __str__(self) -> str:
        return f"{self.swap_id}"
