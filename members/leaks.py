"""Keys and tokens in what members write: found before anybody else reads them.

Refusing too much costs a member a moment; letting one through costs her key. What looks like a
place for a key (`YOUR_KEY`, `sk-...`, `$NAN_API_KEY`) is none.
"""

import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

SHOWN = 4
_PATTERNS: tuple[tuple[Promise, re.Pattern[str]], ...] = (
    (_("an API key (sk-…)"), re.compile(r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}")),
    (_("a Hugging Face token (hf_…)"), re.compile(r"\bhf_[A-Za-z0-9]{12,}")),
    (
        _("a GitHub token"),
        re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{12,}|github_pat_[A-Za-z0-9_]{12,})"),
    ),
    (_("a GitLab, npm or PyPI token"), re.compile(r"\b(?:glpat-|npm_|pypi-)[A-Za-z0-9_-]{12,}")),
    (_("a Slack token"), re.compile(r"\bxox[a-z]-[A-Za-z0-9-]{10,}")),
    (_("an AWS key"), re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    (_("a Google key"), re.compile(r"\bAIza[A-Za-z0-9_-]{30,}")),
    (_("a signed token (JWT)"), re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    (_("a private key"), re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    (
        _("a token after “Bearer”"),
        re.compile(r"\bbearer[ \t:=\"']+[A-Za-z0-9._~+/-]{12,}=*", re.IGNORECASE),
    ),
    (_("a password in an address"), re.compile(r"://[^\s/:@\"'<>]+:[^\s/@\"'<>]{3,}@")),
)
_PLACE = re.compile(r"\.\.\.|…|x{6,}|your|example|tu[-_]?clave|\*{3,}|<|\$", re.IGNORECASE)
_LONG = re.compile(r"[A-Za-z0-9_+/-]{28,}")
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
BITS = 3.9
"""Entropy of a character from which on a long word is no word: English has about 3, random
base 64 of 28 characters 4.3 and more, random hex of 32 about 3.7 (which the next line is for)."""
_HEX = re.compile(r"(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{32,}\Z", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Leak:
    what: Promise
    hint: str
    """Its first characters, so that she finds it; never more."""


def find(text: str) -> Leak | None:
    """The first one. Characters that nobody sees between its letters don't hide it."""
    plain = _visible(text)
    for what, pattern in _PATTERNS:
        for found in pattern.finditer(plain):
            if not _PLACE.search(found[0]):
                return Leak(what=what, hint=f"{found[0][:SHOWN]}…")
    for found in _LONG.finditer(plain):
        if _is_random(found[0]):
            return Leak(what=_("a long random word"), hint=f"{found[0][:SHOWN]}…")
    return None


def _visible(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text)
    return "".join(char for char in normal if unicodedata.category(char) != "Cf")


def _is_random(word: str) -> bool:
    """Not: a path, a name in kebab or snake case, a commit of a repository, one letter again and
    again."""
    if _COMMIT.fullmatch(word) or _PLACE.search(word):
        return False
    if _HEX.fullmatch(word):
        return True
    longest = max(re.split(r"[-_/+]", word), key=len)
    mixed = re.search(r"\d", word) and re.search(r"[A-Z]", word) and re.search(r"[a-z]", word)
    return bool(mixed) and len(longest) >= 16 and _entropy(word) >= BITS


def _entropy(word: str) -> float:
    """Bits a character."""
    counts = Counter(word)
    return -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values())
