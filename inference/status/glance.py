"""How the service stands, in a few words, for pages that are about something else."""

from collections.abc import Collection

from inference.status.facts import Facts
from inference.status.shelf import NothingKnown, shelf
from inference.status.words import API_TROUBLES, TROUBLED


def slots() -> list[Facts]:
    """Those in which something is to run, as the status page has them; none where nobody knows."""
    return [slot for slot in _facts().get("slots", ()) if slot["state"] != "off"]


def silent(*, kinds: Collection[str] = (), name: str = "") -> list[Facts]:
    """Slots (of these kinds, or the one of this name) that answer nobody now: down, taken out,
    loading."""
    return [
        slot
        for slot in slots()
        if slot["state"] in TROUBLED
        and slot["state"] != "degraded"
        and (not kinds or slot["kind"] in kinds)
        and name in ("", slot["name"])
    ]


def api_trouble() -> object:
    """A sentence, or None."""
    return API_TROUBLES.get(_facts().get("api", {}).get("state"))


def _facts() -> Facts:
    try:
        kept = shelf.look()
    except NothingKnown:
        return {}
    return kept.facts if kept.current else {}
