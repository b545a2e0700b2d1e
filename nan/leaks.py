"""Keys and tokens in what people write here: found before anybody else reads them.

Refusing too much costs a member a moment; letting one through costs her key. What looks like a
place for a key (`YOUR_KEY`, `sk-...`, `$NAN_API_KEY`) is none, nor is a digest or a commit that
nobody calls a key: recipes name revisions and checksums.
"""

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from django.core.exceptions import ValidationError
from django.utils.functional import Promise
from django.utils.translation import gettext
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
        re.compile(
            r"""\b(?i:bearer|authorization["']?[ \t]*[:=][ \t]*["']?basic)[ \t:="']+"""
            r"(?=[\w.~+/-]+[0-9A-Z])[A-Za-z0-9._~+/-]{12,}=*"
        ),
    ),
    (_("a password in an address"), re.compile(r"://[^\s/:@\"'<>]+:[^\s/@\"'<>]{3,}@")),
)
_PLACE = re.compile(r"\.\.\.|…|x{6,}|your|example|tu[-_]?clave|\*{3,}|<|\$", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_+/-]{16,}")
LONG = 28
"""Characters from which on a word is looked at even if nothing calls it a key."""
_DIGESTS = {32, 40, 56, 64, 96, 128}
"""Hexadecimal digits of MD5, SHA-1 (commits), SHA-2 and SHA-3. A key may look so: see `_NAMED`."""
_INTEGRITY = re.compile(
    r"sha(?:256-[A-Za-z0-9+/]{43}|384-[A-Za-z0-9+/]{64}|512-[A-Za-z0-9+/]{86})\Z"
)
"""As in lock files of npm and in web pages, in base 64."""
_NAMED = re.compile(
    r"""(?:key|token|secret|passw\w*|bearer|auth\w*|credential\w*|clave|contraseña)
        [\w-]*["'`\]]*[ \t]*(?P<given>[:=]|is\b|es\b)?[ \t]*["'`]*\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""What stands before a value that is a key by its name: `api_key=`, `"token": "`, `--key `."""
BITS = 3.9
"""Entropy of a character from which on a long word is no word: English has about 3, random
base 64 of 28 characters 4.3 and more, random hex of 32 about 3.7 (which the next line is for)."""
_HEX = re.compile(r"(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{28,}\Z", re.IGNORECASE)
RANDOM_HEX = 32
"""Digits from which on hexadecimal is refused, whatever it is called, if it is no digest."""
BEFORE = 40
"""Characters of the same line that are looked at for the name of a value."""
LAYERS = 3
"""Of writing around a key that are taken off: an address within an address within a text."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
"""A character of Markdown's that stands for itself: https://spec.commonmark.org/0.31.2/#backslash-escapes"""


@dataclass(frozen=True, kw_only=True)
class Leak:
    what: Promise
    hint: str
    """Its first characters, so that she finds it; never more."""


def refuse_keys(text: str) -> None:
    """For form fields whose text others read."""
    if told := complaint(text):
        raise ValidationError(told, code="key")


def complaint(*texts: str) -> str:
    """What the writer is told of the first key in them; "" if there is none."""
    leak = next((leak for text in texts if (leak := find(text))), None)
    if leak is None:
        return ""
    return gettext(
        "This holds what looks like %(what)s, beginning with %(hint)s: nothing was kept. Write "
        "YOUR_KEY in its place; if it is a real one, revoke it: it has been typed into a page."
    ) % {"what": leak.what, "hint": leak.hint}


def find(text: str) -> Leak | None:
    """The first one, in however it is written: characters that nobody sees between its letters
    don't hide it, nor does writing them as an address, HTML or Markdown may (`sk%2D`, `&#115;`)."""
    return next((leak for reading in _readings(text) if (leak := _find(reading))), None)


def _readings(text: str) -> Iterator[str]:
    reading = _visible(text)
    yield reading
    for _layer in range(LAYERS):
        plainer = _visible(_ESCAPED.sub(r"\1", html.unescape(unquote(reading))))
        if plainer == reading:
            return
        yield plainer
        reading = plainer


def _find(plain: str) -> Leak | None:
    for what, pattern in _PATTERNS:
        for found in pattern.finditer(plain):
            if not _PLACE.search(found[0]):
                return Leak(what=what, hint=f"{found[0][:SHOWN]}…")
    for found in _WORD.finditer(plain):
        if _is_key(found[0], before=_line_before(plain, found.start())):
            return Leak(what=_("a long random word"), hint=f"{found[0][:SHOWN]}…")
    return None


def _visible(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text)
    return "".join(char for char in normal if unicodedata.category(char) != "Cf")


def _line_before(text: str, start: int) -> str:
    return text[max(0, start - BEFORE) : start].rpartition("\n")[2]


def _is_key(word: str, *, before: str) -> bool:
    """Not: a path, a name in kebab or snake case, a digest or a commit (unless it is called a key),
    one letter again and again."""
    if _PLACE.search(word) or _INTEGRITY.match(word):
        return False
    named = _NAMED.search(before)
    if _HEX.fullmatch(word):
        return bool(named) or (len(word) >= RANDOM_HEX and not _is_digest(word))
    longest = max(re.split(r"[-_/+]", word), key=len)
    if named and named["given"] and _has(longest, r"\d", "[A-Za-z]") and len(longest) >= 12:
        return True
    mixed = len(word) >= LONG and _has(word, r"\d", "[A-Z]", "[a-z]")
    return mixed and len(longest) >= 16 and _entropy(word) >= BITS


def _is_digest(word: str) -> bool:
    return len(word) in _DIGESTS and word in (word.lower(), word.upper())


def _has(word: str, *kinds: str) -> bool:
    return all(re.search(kind, word) for kind in kinds)


def _entropy(word: str) -> float:
    """Bits a character."""
    counts = Counter(word)
    return -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values())
