"""Licences of models in words: what a member may do with what the model gives her."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

FREE = _("Free for any use, also commercial.")
WORDS: "dict[str, StrPromise]" = {
    "apache-2.0": FREE,
    "mit": FREE,
    "bsd-3-clause": FREE,
    "cc-by-4.0": _("Free for any use that names the source."),
    "openrail": _("Free for most uses; the licence lists what is forbidden."),
    "gemma": _("Google's terms: free for most uses; they list what is forbidden."),
    "cc-by-nc-4.0": _("Not for commercial use."),
    "cc-by-nc-sa-4.0": _("Not for commercial use."),
    "mistral-research": _("For research only, not for commercial use."),
    "mrl": _("For research only, not for commercial use."),
}
LLAMA = _("Meta's licence: free for most, with conditions for naming it and for big companies.")
OTHER = _("A licence of its own: read it before you build on this model.")
UNKNOWN = _("The licence is not known yet.")


def words(licence: str) -> str:
    key = licence.strip().lower()
    if not key:
        return str(UNKNOWN)
    return str(LLAMA if key.startswith("llama") else WORDS.get(key, OTHER))
