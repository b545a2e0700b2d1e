"""Versions of clients as members name them.

Votes are counted for each version without anybody reading them first, so a version is digits and
the few words that versions are made with; there is no room in it for anything else.
"""

import re
import unicodedata

LONGEST = 40
_TAG = "a|b|c|rc|alpha|beta|pre|preview|dev|canary|nightly|next|post|insiders?"
_VERSION = re.compile(rf"\d{{1,8}}(?:[.-]\d{{1,8}}){{0,3}}(?:[.-]?(?:{_TAG})(?:[.-]?\d{{1,12}})?)?")
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_LEADING = re.compile(r"(?:v|version|versión)[ .]?(?=\d)")


def plain(text: str) -> str:
    """`V2.0.16 `, `02.0.16` and `2.0.16+a3f9` are all 2.0.16; "" for what is no version."""
    lower = unicodedata.normalize("NFKC", text).strip().casefold()
    without = _LEADING.sub("", lower, count=1) if _LEADING.match(lower) else lower
    version = without.partition("+")[0]
    return _padded(version) if len(version) <= LONGEST and _VERSION.fullmatch(version) else ""


def _padded(version: str) -> str:
    """Numbers without zeros before them; a day has two digits for its month, and two for itself."""
    if day := _DAY.fullmatch(version):
        return f"{day[1]}-{day[2]:0>2}-{day[3]:0>2}"
    return re.sub(r"(?<!\d)0+(?=\d)", "", version)


def order(version: str) -> tuple[list[int], bool, str]:
    """Of two, the older one is smaller; one with a tag is older than the same without."""
    numbers = re.match(r"[\d.-]*\d", version)
    released = numbers[0] if numbers else ""
    return [int(part) for part in re.findall(r"\d+", released)], released == version, version
