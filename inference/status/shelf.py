"""The last facts, kept on disk and in the process: the status page answers whatever is away.

A page is made from facts of a few seconds ago. They are asked for again by one request, which
waits a little, while all others get the old ones at once. When the database can't be had, the last
ones are shown, with their age. Each look at the rows goes into a file, from which the other
processes of this host take it: they show the same, and only one of them asks.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import Error, connections
from django.utils import timezone

from inference.status.facts import Facts, gather

log = structlog.get_logger(__name__)

FRESH_SECONDS = 5.0
OLD_SECONDS = 3 * FRESH_SECONDS
NEVER = float("-inf")
PATIENCE_SECONDS = 1.0
"""For which a request waits for newer facts when those that are there are old, or are no longer
so: that a database is away takes seconds to find out. Once that is known, nobody waits."""
BRIEF_SECONDS = 0.03
"""The same when they are not old: as long as a database that is there takes."""


class NothingKnown(Exception):
    """The database is away, and nothing was ever kept here. The cause says why."""


@dataclass(frozen=True)
class Kept:
    facts: Facts
    current: bool
    """Asked of the database within the last seconds."""

    @property
    def made_at(self) -> datetime:
        made: datetime = self.facts["made_at"]
        return made


def aside(run: Callable[[], None], seconds: float) -> None:
    """Waited for so long."""

    def whole() -> None:
        try:
            run()
        finally:
            connections.close_all()

    thread = threading.Thread(target=whole, daemon=True)
    thread.start()
    thread.join(seconds)


class Shelf:
    def __init__(
        self, file: Path, aside: Callable[[Callable[[], None], float], None] = aside
    ) -> None:
        self._file, self._aside = file, aside
        self._lock = threading.Lock()
        self._facts: Facts | None = None
        self._began = self._looked = self._known = NEVER
        self._asked = self._failed = False
        self._read_at = 0
        """Of the file when it was last read, or written by us: its time in nanoseconds."""

    def look(self) -> Kept:
        """Raises NothingKnown."""
        self._take_from_others()
        if time.monotonic() - self._looked < FRESH_SECONDS and self._facts:
            return self._as_it_is()
        if self._lock.acquire(timeout=self._patience()):
            self._began = time.monotonic()
            if self._facts:
                self._aside(self._renew_if_due, self._waiting())
            else:
                self._renew_if_due()
        return self._as_it_is()

    def _waiting(self) -> float:
        """Of the one request that looks."""
        if self._failed:
            return 0
        return PATIENCE_SECONDS if self._old or self._looked == NEVER else BRIEF_SECONDS

    def _patience(self) -> float:
        """With the one request that looks already: not at all if there is something to show."""
        if self._facts is None:
            return -1
        if self._failed or not self._old:
            return 0
        return max(0.0, self._began + PATIENCE_SECONDS - time.monotonic())

    @property
    def _old(self) -> bool:
        return time.monotonic() - self._known > OLD_SECONDS

    def forget(self) -> None:
        """Somebody has just changed what is shown."""
        self._looked = NEVER

    def _take_from_others(self) -> None:
        """What another process has looked up since; one look at the file's time if there is none.
        Not in place of the look that `forget` asks for."""
        written_at = self._written_at()
        if written_at == self._read_at:
            return
        self._read_at = written_at
        found = self._read()
        if found is None or (self._facts and found["made_at"] <= self._facts["made_at"]):
            return
        age = (timezone.now() - found["made_at"]).total_seconds()
        self._facts, self._known = found, time.monotonic() - age
        if age < FRESH_SECONDS:
            self._failed = False
        if self._looked != NEVER:
            self._looked = max(self._looked, self._known)

    def _written_at(self) -> int:
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return 0

    def _as_it_is(self) -> Kept:
        if self._facts is None:
            raise NothingKnown
        return Kept(self._facts, current=self._asked and not (self._failed or self._old))

    def _renew_if_due(self) -> None:
        """Gives the lock back."""
        try:
            if time.monotonic() - self._looked >= FRESH_SECONDS or self._facts is None:
                self._renew()
        finally:
            self._lock.release()

    def _renew(self) -> None:
        try:
            self._facts, self._failed = gather(timezone.now()), False
            self._known = time.monotonic()
        except Error as error:
            log.warning("status_without_database", error=type(error).__name__)
            self._failed = True
            if self._facts is None:
                raise NothingKnown from error
        finally:
            self._looked, self._asked = time.monotonic(), True
        if not self._failed:
            self._store(self._facts)

    def _store(self, facts: Facts) -> None:
        """Several processes write the same; each into a file of its own, then at once in place."""
        new = self._file.with_suffix(f".{os.getpid()}.new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(as_json(facts))
            written_at = new.stat().st_mtime_ns
            new.replace(self._file)
            self._read_at = written_at
        except OSError as error:
            log.warning("status_not_stored", error=type(error).__name__)

    def _read(self) -> Facts | None:
        try:
            return from_json(self._file.read_text())
        except (OSError, ValueError, KeyError, TypeError):
            return None


def as_json(facts: Facts, *, indent: int | None = None) -> str:
    return json.dumps(facts, cls=DjangoJSONEncoder, ensure_ascii=False, indent=indent)


def from_json(text: str) -> Facts:
    facts: Facts = json.loads(text, object_hook=_revived)
    facts["slots"], facts["api"], facts["made_at"]  # a KeyError for what is not ours
    return facts


def _revived(found: dict[str, Any]) -> dict[str, Any]:
    for name, value in found.items():
        if name.endswith("_at") and value:
            found[name] = datetime.fromisoformat(value)
        elif name == "day" and isinstance(value, str):
            found[name] = date.fromisoformat(value)
    return found


shelf = Shelf(settings.STATE_DIR / "status.json")
