"""Which clients were run for real, with which version: verified.json, written by
`make test-clients`. `how`: `page` where the configuration was taken from the rendered page.
"""

import json
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "verified.json"


@dataclass(frozen=True, kw_only=True)
class Verified:
    package: str
    version: str
    on: date


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
            )
            for entry in entries
        ]
    return found


def of(name: str) -> list[Verified]:
    return read().get(name, [])
