"""What admins tell all members."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class News(models.Model):
    """Never changed: a wrong one is withdrawn and written anew."""

    at = models.DateTimeField(_("when"), default=timezone.now)
    text_es = models.TextField(_("in Spanish"), max_length=1000)
    text_en = models.TextField(_("in English"), max_length=1000)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True)
    withdrawn_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        verbose_name = verbose_name_plural = _("news")
        ordering: ClassVar[list[str]] = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}"
