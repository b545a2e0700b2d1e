"""Receipts: a number that only the voter knows, spelt as four words.

44 bits, drawn by the system's own randomness. Of 10,000 receipts, somebody who guesses one has a
chance of one in 1.7 thousand million. That no two in a round are the same is not left to chance:
Postgres refuses the second, and another is drawn.

The number, not the words, is stored and published: which language a voter reads would otherwise
tell something about her.
"""

import secrets
import unicodedata
from functools import cache
from pathlib import Path

from members.models import PublishedBallot, Vote

WORDS = 4
LIST_BITS = 11
BITS = WORDS * LIST_BITS
LISTS = {"en": "english.txt", "es": "spanish.txt"}


def draw() -> int:
    return secrets.randbits(BITS)


def words(receipt: int, language: str) -> str:
    """In the given language if there is a list for it, else in English."""
    listed = word_list(language if language in LISTS else "en")
    shifts = range((WORDS - 1) * LIST_BITS, -1, -LIST_BITS)
    return " ".join(listed[receipt >> shift & (1 << LIST_BITS) - 1] for shift in shifts)


def numbers(text: str) -> set[int]:
    """What these words may stand for: one number, or one in each language. Empty if nothing."""
    typed = [_plain(word) for word in text.replace("-", " ").split()]
    if len(typed) != WORDS:
        return set()
    found = set()
    for language in LISTS:
        places = _places(language)
        if all(word in places for word in typed):
            number = 0
            for word in typed:
                number = number << LIST_BITS | places[word]
            found.add(number)
    return found


def find(*, vote: Vote, text: str) -> PublishedBallot | None:
    """The published ballot with this receipt."""
    rows = PublishedBallot.objects.filter(vote=vote, receipt__in=numbers(text))
    return rows.first()


@cache
def word_list(language: str) -> tuple[str, ...]:
    file = Path(__file__).parent / "words" / LISTS[language]
    return tuple(file.read_text(encoding="utf-8").split())


@cache
def _places(language: str) -> dict[str, int]:
    return {_plain(word): number for number, word in enumerate(word_list(language))}


def _plain(word: str) -> str:
    """Without accents, as people type."""
    parts = unicodedata.normalize("NFD", word.lower())
    return "".join(part for part in parts if not unicodedata.combining(part))
