"""The person who signs in. Her keys are rows of `inference`."""

import uuid
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Upper
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def beginning(self, text: str) -> models.QuerySet["User"]:
        """Whose address or name begins so: that is what the indexes answer, however many people
        there are."""
        return self.filter(Q(email__istartswith=text) | Q(name__istartswith=text))

    def get_by_natural_key(self, email: str | None) -> "User":
        return self.get(email__iexact=email)


class User(AbstractBaseUser, PermissionsMixin):
    """Signs in with an e-mail address; everything outside this database knows `public_id` only."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    email = models.EmailField(_("e-mail address"), unique=True)
    name = models.CharField(_("name"), max_length=80, blank=True)
    language = models.CharField(_("language"), max_length=5, blank=True)
    is_staff = models.BooleanField(_("staff"), default=False)
    is_active = models.BooleanField(
        _("may sign in"), default=True, help_text=_("Off while a person is suspended.")
    )
    date_joined = models.DateTimeField(_("signed up"), default=timezone.now)
    session_epoch = models.PositiveIntegerField(default=0, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name = _("person")
        verbose_name_plural = _("people")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(Lower("email"), name="one_person_per_email"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            # For the staff's search by the beginning of an address or a name.
            models.Index(
                OpClass(Upper("email"), name="text_pattern_ops"), name="people_by_email_prefix"
            ),
            models.Index(
                OpClass(Upper("name"), name="text_pattern_ops"), name="people_by_name_prefix"
            ),
        ]

    def __str__(self) -> str:
        return self.email

    def get_session_auth_hash(self) -> str:
        """Raising `session_epoch` ends every session of this person at its next request."""
        return f"{super().get_session_auth_hash()}.{self.session_epoch}"

    @property
    def is_member(self) -> bool:
        """The one answer to "may she have keys and votes?": in, not suspended, not left."""
        membership = getattr(self, "membership", None)
        return bool(self.is_active and membership and membership.is_active)

    @property
    def call_name(self) -> str:
        """For herself and for admins: it may be her address."""
        return self.name or self.email

    @property
    def shown_name(self) -> str:
        """For other members: never an address, also if she has typed hers as her name."""
        return "" if "@" in self.name else self.name
