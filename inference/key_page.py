"""What a member's key page says, decided here so that the template only says it."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from inference import keys, reveal
from inference.errors import words
from inference.keys import Summary
from inference.models import Key, KeyState


class Situation(StrEnum):
    NONE = "none"
    MAKING = "making"
    READY = "ready"
    LIVE = "live"
    PAUSING = "pausing"
    PAUSED = "paused"
    RESUMING = "resuming"
    STOPPED = "stopped"
    FAILED = "failed"
    REMOVING = "removing"


@dataclass(frozen=True)
class KeyPage:
    summary: Summary
    situation: Situation
    can_be_shown: bool
    never_seen: bool

    @classmethod
    def of(cls, user: Any) -> "KeyPage":
        summary = keys.summary(user)
        unseen = bool(summary.current and _unseen(summary.current))
        shown = unseen and _waits(summary.current)
        return cls(summary, _situation(summary, shown), shown, unseen and not shown)

    @property
    def current(self) -> Key | None:
        return self.summary.current

    @property
    def offers_creation(self) -> bool:
        return self.situation in (Situation.NONE, Situation.REMOVING, Situation.FAILED)

    @property
    def moving(self) -> bool:
        """Whether the page should look again by itself."""
        return self.summary.pending

    @property
    def has_actions(self) -> bool:
        """There is a key that its member may change."""
        return not self.offers_creation and self.situation not in (
            Situation.MAKING,
            Situation.STOPPED,
        )

    @property
    def fingerprint(self) -> str:
        """Another one as soon as the page would say something else."""
        summary = self.summary
        rows = [summary.current, summary.outgoing, *summary.leaving]
        keys = [(k.id, k.state, k.rpm, k.parallel, k.remove_at) for k in rows if k]
        said = (self.situation, self.moving, self.never_seen, summary.trouble, keys)
        return hashlib.sha256(repr(said).encode()).hexdigest()[:16]

    @property
    def words(self) -> Any:
        """The member's words for what is wrong, if something is."""
        code = ""
        if self.current and self.current.state == KeyState.FAILED:
            code = self.current.error_code
        elif self.summary.pending:
            code = self.summary.trouble
        return words(code).member if code else ""


def _unseen(key: Key) -> bool:
    return key.state == KeyState.ACTIVE and key.revealed_at is None


def _waits(key: Key | None) -> bool:
    """Whether it can still be shown. With Redis away: perhaps, so that she tries."""
    if key is None:
        return False
    try:
        return reveal.waiting(key.id, key.token)
    except reveal.RevealUnavailable:
        return True


def _situation(summary: Summary, shown: bool) -> Situation:
    key = summary.current
    if key is None:
        return Situation.REMOVING if summary.leaving else Situation.NONE
    if key.state == KeyState.REQUESTED:
        return Situation.MAKING
    if key.state == KeyState.FAILED:
        return Situation.FAILED
    if summary.held:
        return Situation.STOPPED
    if key.state == KeyState.BLOCKED:
        return Situation.PAUSED if summary.paused else Situation.RESUMING
    if summary.paused:
        return Situation.PAUSING
    return Situation.READY if shown else Situation.LIVE
