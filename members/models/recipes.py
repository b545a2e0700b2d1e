"""What members write for each other about a client: recipes and known problems."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class RecipeQuerySet(models.QuerySet["Recipe"]):
    def published(self) -> "RecipeQuerySet":
        return self.filter(withdrawn_at=None, current__isnull=False)


class Recipe(models.Model):
    """One text about one client. What others read is `current`, an edit that an admin has let
    through; a newer edit waits without changing it."""

    class Kind(models.TextChoices):
        RECIPE = "recipe", pgettext_lazy("docs", "recipe")
        PROBLEM = "problem", pgettext_lazy("docs", "known problem")

    client = models.SlugField(_("client"), max_length=40, help_text=_("The name of its page."))
    kind = models.CharField(_("kind"), max_length=8, choices=Kind.choices)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="recipes"
    )
    current = models.OneToOneField(
        "members.RecipeEdit", models.SET_NULL, null=True, related_name="+", editable=False
    )
    made_at = models.DateTimeField(_("written"), default=timezone.now)
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True)

    objects: ClassVar[models.Manager["Recipe"]] = RecipeQuerySet.as_manager()

    class Meta:
        verbose_name = _("recipe")
        verbose_name_plural = _("recipes")
        ordering: ClassVar[list[str]] = ["-pk"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["client"],
                condition=Q(withdrawn_at=None, current__isnull=False),
                name="recipes_published",
            )
        ]

    def __str__(self) -> str:
        return f"{self.client} {self.kind} {self.pk}"


class RecipeEdit(models.Model):
    """pending → accepted | declined | replaced (by a newer one before anybody looked)

    All of them are kept: they are the history.
    """

    class State(models.TextChoices):
        PENDING = "pending", pgettext_lazy("edit", "waiting for review")
        ACCEPTED = "accepted", pgettext_lazy("edit", "published")
        DECLINED = "declined", pgettext_lazy("edit", "declined")
        REPLACED = "replaced", pgettext_lazy("edit", "replaced")

    recipe = models.ForeignKey(Recipe, models.CASCADE, related_name="edits")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="recipe_edits"
    )
    title = models.CharField(_("title"), max_length=100)
    version = models.CharField(_("version of the client"), max_length=40)
    body = models.TextField(_("text"), max_length=8000)
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.PENDING)
    at = models.DateTimeField(_("written"), default=timezone.now)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(_("decided"), null=True)
    reason = models.CharField(_("reason"), max_length=500, blank=True)

    class Meta:
        verbose_name = _("edit of a recipe")
        verbose_name_plural = _("edits of recipes")
        ordering: ClassVar[list[str]] = ["-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["recipe"], condition=Q(state="pending"), name="one_pending_edit"
            )
        ]

    def __str__(self) -> str:
        return f"{self.recipe_id}: {self.title}"


class RecipeVote(models.Model):
    """Whether it worked for her, with one version of the client. She may change her mind."""

    recipe = models.ForeignKey(Recipe, models.CASCADE, related_name="votes")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="recipe_votes")
    version = models.CharField(_("version of the client"), max_length=40)
    works = models.BooleanField(_("works"))
    at = models.DateTimeField(_("at"), default=timezone.now)

    class Meta:
        verbose_name = _("vote on a recipe")
        verbose_name_plural = _("votes on recipes")
        ordering: ClassVar[list[str]] = ["pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["recipe", "user", "version"], name="one_recipe_vote_per_version"
            )
        ]

    def __str__(self) -> str:
        return f"{self.recipe_id} {self.version} {self.works}"
