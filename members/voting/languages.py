"""Names of languages, in the reader's own, from the codes that model cards give."""

from collections.abc import Iterable

from babel import Locale
from django.conf import settings
from django.utils.translation import get_language


def words(codes: Iterable[str]) -> list[str]:
    """A code that nobody knows stands as it is."""
    names = Locale.parse(get_language() or settings.LANGUAGE_CODE, sep="-").languages
    return [names.get(code.strip().lower(), code) for code in map(str, codes)]
