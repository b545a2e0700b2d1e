"""Which clients were run for real, with which version: verified.json, written by
`make test-clients`, with the calls that each made and a mark of what its page showed then.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from inference.docs import markup
from inference.docs.pages import Page

FILE = Path(__file__).parent / "verified.json"


@dataclass(frozen=True, kw_only=True)
class Verified:
    package: str
    version: str
    on: date
    calls: tuple[str, ...]
    """That it made, by the names of probes."""
    shown: str
    """What its page showed, as `shown` gives it."""


@cache
def read() -> dict[str, list[Verified]]:
    """By the name of the page."""
    found: dict[str, list[Verified]] = {}
    for name, entries in json.loads(FILE.read_text()).items():
        found[name] = [
            Verified(
                package=entry["package"],
                version=entry["version"],
                on=date.fromisoformat(entry["on"]),
                calls=tuple(entry["calls"]),
                shown=entry["shown"],
            )
            for entry in entries
        ]
    return found


def of(name: str) -> list[Verified]:
    return read().get(name, [])


def shown(page: Page) -> str:
    """A mark of all that a reader copies from a page: it changes when her configuration would."""
    blocks = re.findall(r"^```.*?^```$", page.body, re.MULTILINE | re.DOTALL)
    files = [markup.read_code(page.name, file) for file in page.files]
    return hashlib.sha256("\0".join([*blocks, *files]).encode()).hexdigest()[:16]
