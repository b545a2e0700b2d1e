"""Who is in."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class MembershipQuerySet(models.QuerySet["Membership"]):
    def active(self) -> "MembershipQuerySet":
        return self.filter(state=Membership.State.ACTIVE)

    def in_good_standing(self) -> "MembershipQuerySet":
        """Active, and of people who can sign in: who may vote now, and is written to."""
        return self.active().filter(user__is_active=True)

    def seated(self) -> "MembershipQuerySet":
        """Who takes a seat: a suspension may end, so it keeps the seat."""
        return self.filter(state__in=[Membership.State.ACTIVE, Membership.State.SUSPENDED])


class Membership(models.Model):
    """Being in, once per person: active ⇄ suspended, and either → left, which is the end.

    After she left, the row stays without her name until the gateway has confirmed that her keys
    are gone; then `user` becomes empty and only the dates are kept.
    """

    class State(models.TextChoices):
        ACTIVE = "active", _("active")
        SUSPENDED = "suspended", _("suspended")
        LEFT = "left", _("left")

    TRANSITIONS: ClassVar[dict[str, tuple[str, ...]]] = {
        State.ACTIVE: (State.SUSPENDED, State.LEFT),
        State.SUSPENDED: (State.ACTIVE, State.LEFT),
        State.LEFT: (),
    }

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="membership",
        verbose_name=_("person"),
    )
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.ACTIVE)
    since = models.DateTimeField(_("member since"), default=timezone.now)
    left_at = models.DateTimeField(_("left at"), null=True, blank=True)

    objects: ClassVar[models.Manager["Membership"]] = MembershipQuerySet.as_manager()

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["state", "id"], name="memberships_by_state"),
            models.Index(
                fields=["id"],
                condition=Q(state="left", user__isnull=False),
                name="memberships_to_erase",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.state}"

    @property
    def is_active(self) -> bool:
        return self.state == self.State.ACTIVE


class MembershipEvent(models.Model):
    """What happened to a membership, by whom and why; never changed."""

    class Action(models.TextChoices):
        ACTIVATED = "activated", _("became a member")
        TAKEN_BACK = "taken_back", _("approval undone")
        SUSPENDED = "suspended", _("suspended")
        REINSTATED = "reinstated", _("reinstated")
        LIMITS = "limits", _("limits changed")
        LEFT = "left", _("left")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="membership_events",
        verbose_name=_("person"),
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("by"),
    )
    action = models.CharField(_("what"), max_length=12, choices=Action.choices)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    at = models.DateTimeField(_("at"), default=timezone.now)

    class Meta:
        verbose_name = _("membership event")
        verbose_name_plural = _("membership events")

    def __str__(self) -> str:
        return f"{self.user_id} {self.action}"
