"""What members gain and lose when one model takes another's place."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from inference.models import CatalogModel

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

CAPABILITIES: "dict[str, StrPromise]" = {
    "tools": _("calling tools"),
    "reasoning": _("reasoning before it answers"),
    "vision": _("understanding images"),
}


@dataclass(frozen=True)
class Changes:
    gained: list[str]
    lost: list[str]
    context_before: int
    context_after: int

    @property
    def context_changed(self) -> bool:
        return self.context_before != self.context_after


def changes(old: CatalogModel, new: CatalogModel) -> Changes:
    """In the current language; a capability that has no words here says its own name."""
    return Changes(
        gained=_words(new, without=old),
        lost=_words(old, without=new),
        context_before=old.context_length,
        context_after=new.context_length,
    )


def _words(model: CatalogModel, *, without: CatalogModel) -> list[str]:
    names = [name for name in model.capabilities if not without.has(name) and name != "chat"]
    return [str(CAPABILITIES.get(name, name)) for name in names]
