"""Rows of keys: who may hold them, the keys, what happened to them."""

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.limits import Limits


class KeyHolderQuerySet(models.QuerySet["KeyHolder"]):
    def due(self, now: datetime) -> "KeyHolderQuerySet":
        """Work is overdue and no worker is at it."""
        return self.free(now).filter(due_at__lte=now).order_by("due_at")

    def free(self, now: datetime) -> "KeyHolderQuerySet":
        """No worker is at it; a lease that ran out belongs to one that died."""
        return self.filter(Q(lease_until=None) | Q(lease_until__lte=now))


class KeyHolder(models.Model):
    """What one member may do at the gateway, with all of her keys together.

    Outlives the person: `owner_ref` is her public id, which the gateway knows, and her keys must
    still be removed there after her row is gone. At most one worker changes the keys of a holder
    at a time (`lease_until`), so that her keys together never pass her limits.
    """

    owner_ref = models.UUIDField(_("opaque member id"), primary_key=True, editable=False)
    member = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="key_holder",
        verbose_name=_("member"),
    )
    own_rpm = models.PositiveIntegerField(
        _("requests a minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Empty: what every member gets."),
    )
    own_parallel = models.PositiveIntegerField(
        _("requests at the same time"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Empty: what every member gets."),
    )
    paused = models.BooleanField(_("paused by the member"), default=False)
    held = models.BooleanField(_("stopped by an admin"), default=False)
    due_at = models.DateTimeField(_("next step due"), null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    interrupted = models.BooleanField(
        default=False, editable=False, help_text=_("The worker before died in the middle.")
    )
    attempts = models.PositiveSmallIntegerField(_("failed attempts"), default=0, editable=False)
    error_code = models.CharField(_("last error"), max_length=40, blank=True, editable=False)

    objects = KeyHolderQuerySet.as_manager()

    class Meta:
        verbose_name = _("key holder")
        verbose_name_plural = _("key holders")
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="holder_due")
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(own_rpm=None) | Q(own_rpm__gte=1), name="holder_rpm_at_least_one"
            ),
            models.CheckConstraint(
                condition=Q(own_parallel=None) | Q(own_parallel__gte=1),
                name="holder_parallel_at_least_one",
            ),
        ]

    def __str__(self) -> str:
        return str(self.owner_ref)

    @property
    def limits(self) -> Limits:
        return Limits(
            self.own_rpm or settings.MEMBER_RPM, self.own_parallel or settings.MEMBER_PARALLEL
        )

    @property
    def stopped(self) -> bool:
        return self.paused or self.held


class KeyState(models.TextChoices):
    """What the gateway was last known to have.

    requested → active ⇄ blocked → deleted
        ├→ failed → deleted
        └→ deleted
    """

    REQUESTED = "requested", pgettext_lazy("key", "being made")
    ACTIVE = "active", pgettext_lazy("key", "active")
    BLOCKED = "blocked", pgettext_lazy("key", "blocked")
    DELETED = "deleted", pgettext_lazy("key", "deleted")
    FAILED = "failed", pgettext_lazy("key", "failed")


TRANSITIONS: dict[str, frozenset[str]] = {
    KeyState.REQUESTED: frozenset({KeyState.ACTIVE, KeyState.FAILED, KeyState.DELETED}),
    KeyState.ACTIVE: frozenset({KeyState.BLOCKED, KeyState.FAILED, KeyState.DELETED}),
    KeyState.BLOCKED: frozenset({KeyState.ACTIVE, KeyState.FAILED, KeyState.DELETED}),
    KeyState.FAILED: frozenset({KeyState.DELETED}),
    KeyState.DELETED: frozenset(),
}


class KeyQuerySet(models.QuerySet["Key"]):
    def of(self, user: Any) -> "KeyQuerySet":
        return self.filter(holder_id=user.public_id)

    def live(self) -> "KeyQuerySet":
        return self.exclude(state=KeyState.DELETED)

    def current(self) -> "KeyQuerySet":
        """The one key of each member that is not on its way out."""
        return self.live().filter(remove_at=None)


class Key(models.Model):
    """One API key. Its id is its alias at the gateway; its plaintext is nowhere.

    `state`, `token`, `rpm` and `parallel` are what the gateway confirmed and only the gateway
    worker writes them; what is wanted follows from `remove_at` and from the holder.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    holder = models.ForeignKey(
        KeyHolder, on_delete=models.PROTECT, related_name="keys", verbose_name=_("holder")
    )
    state = models.CharField(
        _("state"), max_length=10, choices=KeyState.choices, default=KeyState.REQUESTED
    )
    remove_at = models.DateTimeField(_("to be gone from"), null=True)
    outgoing = models.BooleanField(
        _("outgoing"), default=False, help_text=_("Still works while its successor takes over.")
    )
    replaces = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, related_name="+", verbose_name=_("replaces")
    )
    rpm = models.PositiveIntegerField(_("requests a minute, confirmed"), default=0)
    parallel = models.PositiveIntegerField(_("requests at the same time, confirmed"), default=0)
    token = models.CharField(
        _("SHA-256 of the key"), max_length=64, blank=True, help_text=_("The gateway's own id.")
    )
    hint = models.CharField(_("last characters"), max_length=4, blank=True)
    public_key = models.BinaryField(max_length=32, editable=False)
    doubtful_until = models.DateTimeField(
        null=True, editable=False, help_text=_("A call's outcome is unknown: look again.")
    )
    error_code = models.CharField(_("error"), max_length=40, blank=True)
    requested_at = models.DateTimeField(_("requested"), default=timezone.now)
    active_at = models.DateTimeField(_("made"), null=True)
    deleted_at = models.DateTimeField(_("deleted"), null=True)
    revealed_at = models.DateTimeField(_("shown"), null=True)
    changed_at = models.DateTimeField(auto_now=True)
    last_used_on = models.DateField(_("last used"), null=True)

    objects = KeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("key")
        verbose_name_plural = _("keys")
        ordering: ClassVar[list[str]] = ["-requested_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["holder"],
                condition=~Q(state="deleted") & Q(remove_at=None),
                name="one_live_key_per_member",
            ),
            models.UniqueConstraint(
                fields=["holder"],
                condition=~Q(state="deleted") & Q(outgoing=True),
                name="one_outgoing_key_per_member",
            ),
            models.UniqueConstraint(
                fields=["token"], condition=~Q(token=""), name="one_key_per_token"
            ),
        ]

    def __str__(self) -> str:
        return f"…{self.hint}" if self.hint else str(self.id)[:8]

    @property
    def limits(self) -> Limits:
        return Limits(self.rpm, self.parallel)

    def leaving(self, now: datetime) -> bool:
        return self.remove_at is not None and self.remove_at <= now


class KeyEvent(models.Model):
    """Who did what to whose keys, and when. Written once, never changed."""

    holder = models.ForeignKey(KeyHolder, on_delete=models.PROTECT, related_name="events")
    key = models.ForeignKey(Key, on_delete=models.PROTECT, null=True, related_name="events")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("by"),
        help_text=_("Empty: the system."),
    )
    what = models.CharField(_("what"), max_length=20)
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    at = models.DateTimeField(_("when"), default=timezone.now)

    class Meta:
        verbose_name = _("key event")
        verbose_name_plural = _("key events")
        ordering: ClassVar[list[str]] = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.what} {self.at:%Y-%m-%d %H:%M}"


class Reconciliation(models.Model):
    """One comparison of our rows with the gateway's: how far apart the two sides were."""

    at = models.DateTimeField(_("when"), default=timezone.now, db_index=True)
    ours = models.PositiveIntegerField(_("keys here"), default=0)
    theirs = models.PositiveIntegerField(_("keys at the gateway"), default=0)
    orphans = models.PositiveIntegerField(_("unknown here, removed there"), default=0)
    spared = models.PositiveIntegerField(_("unknown here, left there"), default=0)
    missing = models.PositiveIntegerField(_("missing there"), default=0)
    differing = models.PositiveIntegerField(_("differing"), default=0)

    class Meta:
        verbose_name = _("reconciliation")
        verbose_name_plural = _("reconciliations")
        ordering: ClassVar[list[str]] = ["-at"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}: {self.drift}"

    @property
    def drift(self) -> int:
        return self.orphans + self.spared + self.missing + self.differing
