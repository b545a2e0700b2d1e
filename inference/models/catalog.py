"""Rows of what can run: the models we know how to serve, and the slots that members call."""

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

PUBLIC_NAME = RegexValidator(
    r"^[a-z0-9][a-z0-9.-]{0,39}\Z",
    _("At most 40 lower-case letters, digits, points, hyphens; first a letter or digit."),
)
SLOT_NAME = RegexValidator(
    r"^[a-z0-9][a-z0-9-]{0,39}\Z", _("At most 40 lower-case letters, digits and hyphens.")
)
REPOSITORY = RegexValidator(
    r"^[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}\Z",
    _("A Hugging Face repository: owner/name."),
)
COMMIT = RegexValidator(r"^[0-9a-f]{40}\Z", _("A full commit: 40 digits and letters a to f."))
SLOTS = 8
"""Backends that the pool has; its file can't be extended while it runs."""


class Kind(models.TextChoices):
    CHAT = "chat", _("chat")
    EMBEDDING = "embedding", _("embeddings")


class CatalogModelQuerySet(models.QuerySet["CatalogModel"]):
    def offered(self) -> "CatalogModelQuerySet":
        return self.filter(offered=True)


class CatalogModel(models.Model):
    """A model, pinned to one commit, with everything an engine must be told to serve it."""

    name = models.CharField(
        _("name"),
        max_length=40,
        unique=True,
        validators=[PUBLIC_NAME],
        help_text=_("What members write as the model's name. It can't be changed later."),
    )
    title = models.CharField(_("title"), max_length=80)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.CHAT)
    repo = models.CharField(_("repository"), max_length=200, validators=[REPOSITORY])
    revision = models.CharField(_("commit"), max_length=40, validators=[COMMIT])
    licence = models.CharField(_("licence"), max_length=60)
    weights_mib = models.PositiveIntegerField(_("size of the weights (MiB)"))
    config = models.JSONField(
        _("configuration"),
        default=dict,
        blank=True,
        help_text=_("The model's config.json: layers, heads and sizes for the estimate of memory."),
    )
    gpus_needed = models.PositiveSmallIntegerField(
        _("GPUs a replica needs"), default=1, help_text=_("0: it runs on the CPU.")
    )
    memory_mib = models.PositiveIntegerField(
        _("memory it takes on each GPU (MiB)"),
        default=0,
        help_text=_("So much must be free before it is started; 0: nothing is checked."),
    )
    context_length = models.PositiveIntegerField(
        _("context (tokens)"), validators=[MinValueValidator(256), MaxValueValidator(10_000_000)]
    )
    max_output = models.PositiveIntegerField(_("longest answer (tokens)"), default=32_768)
    capabilities = models.JSONField(
        _("capabilities"), default=list, blank=True, help_text=_("tools, reasoning, vision, …")
    )
    flags = models.JSONField(_("engine flags"), default=dict, blank=True)
    environment = models.JSONField(_("engine environment"), default=dict, blank=True)
    load_seconds = models.PositiveIntegerField(
        _("longest time to load (seconds)"),
        default=900,
        validators=[MinValueValidator(10), MaxValueValidator(7200)],
    )
    offered = models.BooleanField(_("can be chosen"), default=True)
    added_at = models.DateTimeField(_("added"), default=timezone.now)

    objects = CatalogModelQuerySet.as_manager()

    class Meta:
        verbose_name = _("model")
        verbose_name_plural = _("models")
        ordering: ClassVar[list[str]] = ["title"]

    def __str__(self) -> str:
        return self.title or self.name

    @property
    def weights(self) -> str:
        """How servers name these weights in their reports."""
        return f"{self.repo}@{self.revision}"

    def has(self, capability: str) -> bool:
        return capability in self.capabilities


class Slot(models.Model):
    """What members call and vote on. Its name never changes; the model behind it does."""

    name = models.CharField(_("name"), max_length=40, unique=True, validators=[SLOT_NAME])
    title = models.CharField(_("title"), max_length=80)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.CHAT)
    number = models.PositiveSmallIntegerField(
        _("place in the pool"),
        unique=True,
        validators=[MinValueValidator(1), MaxValueValidator(SLOTS)],
    )
    model = models.ForeignKey(
        CatalogModel,
        on_delete=models.PROTECT,
        null=True,
        related_name="slots",
        verbose_name=_("model"),
    )
    model_since = models.DateTimeField(_("since"), null=True)
    least_concurrent = models.PositiveIntegerField(
        _("requests at once that it must carry"),
        default=0,
        help_text=_("At the context below, all replicas together; 0: nothing is required."),
    )
    least_context = models.PositiveIntegerField(_("context that it must carry"), default=0)
    rotating_since = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = pgettext_lazy("fleet", "slot")
        verbose_name_plural = pgettext_lazy("fleet", "slots")
        ordering: ClassVar[list[str]] = ["number"]

    def __str__(self) -> str:
        return self.title or self.name

    @classmethod
    def free_number(cls) -> int | None:
        """The lowest place in the pool that no slot has; None if all are taken."""
        taken = set(cls.objects.values_list("number", flat=True))
        return next((number for number in range(1, SLOTS + 1) if number not in taken), None)

    @property
    def backend(self) -> str:
        return f"slot{self.number:02}"

    def served_names(self, model: CatalogModel, also: "list[str] | None" = None) -> list[str]:
        """Every name that an engine of this slot answers to; the first is the one in its metrics.

        The slot's own name is always among them, and it is the one that the gateway calls: so
        every replica answers every name, whichever model it holds.
        """
        return list(dict.fromkeys([model.name, self.name, *(also or [])]))
