"""Limits of a member and how her keys share them."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Requests a minute, and requests at the same time. LiteLLM enforces both per key only."""

    rpm: int
    parallel: int

    def within(self, other: "Limits") -> bool:
        return self.rpm <= other.rpm and self.parallel <= other.parallel

    def __add__(self, other: object) -> "Limits":
        if not isinstance(other, Limits):
            return NotImplemented
        return Limits(self.rpm + other.rpm, self.parallel + other.parallel)

    def lower(self, other: "Limits") -> "Limits":
        return Limits(min(self.rpm, other.rpm), min(self.parallel, other.parallel))


NOTHING = Limits(0, 0)


def can_be_shared(limits: Limits) -> bool:
    """Whether two keys can work side by side: each needs one request, a minute and at a time."""
    return limits.parallel >= 2 and limits.rpm >= 2


def outgoing_share(limits: Limits) -> Limits:
    """What the old key keeps while a new one takes over: one at a time, a fifth of the minute."""
    return Limits(max(1, limits.rpm // 5), 1)


def incoming_share(limits: Limits) -> Limits:
    out = outgoing_share(limits)
    return Limits(limits.rpm - out.rpm, limits.parallel - out.parallel)
