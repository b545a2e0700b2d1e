"""Names of languages, in the reader's own, from the codes that model cards give."""

from collections.abc import Iterable

from django.utils.translation import get_language, get_language_info


def words(codes: Iterable[str]) -> list[str]:
    """A code that Django does not know stands as it is."""
    return [_named(str(code)) for code in codes]


def _named(code: str) -> str:
    try:
        name = str(get_language_info(code.strip().lower())["name_translated"])
    except KeyError:
        return code
    return name if (get_language() or "").startswith("en") else name[:1].lower() + name[1:]
