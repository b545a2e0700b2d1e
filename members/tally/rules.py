"""From a count to a decision: quorum first, then the winner, then the rule for ties."""

from collections.abc import Sequence
from dataclasses import dataclass

from members.tally.draw import drawn
from members.tally.schulze import Count

KEEP = "keep"
"""The option *keep the current model*: it is on every ballot."""


@dataclass(frozen=True)
class Outcome:
    winner: str
    tied: tuple[str, ...] = ()
    """Options that share the first place by Schulze's method; empty when there is one winner."""
    tie_rule: str = ""
    """What parted them: `current`, `first` preferences, `draw`; empty without a tie."""
    quorum: int | None = None
    """Ballots that were needed; None when the file does not say how long the roll is."""
    quorum_met: bool = True

    @property
    def changes(self) -> bool:
        """Does this ask for another model? A tie asks too, but nothing follows by itself."""
        return self.quorum_met and self.winner != KEEP


def quorum_of(*, roll: int, percent: int) -> int:
    """The least number of ballots: a part of a voter counts as a whole one."""
    return -(-roll * percent // 100)


def decide(count: Count, *, seed: str, roll: int | None = None, percent: int = 30) -> Outcome:
    """Below the quorum the current model is kept. A tie with the current model keeps it; another
    one goes to more first preferences, then to the draw."""
    needed = None if roll is None else quorum_of(roll=roll, percent=percent)
    winner, rule = _winner(count, seed)
    met = needed is None or count.ballots >= needed
    return Outcome(
        winner=winner if met else KEEP,
        tied=count.winners if rule else (),
        tie_rule=rule,
        quorum=needed,
        quorum_met=met,
    )


def _winner(count: Count, seed: str) -> tuple[str, str]:
    tied = count.winners
    if len(tied) == 1:
        return tied[0], ""
    if KEEP in tied:
        return KEEP, "current"
    best = _most_first(count, tied)
    return (best[0], "first") if len(best) == 1 else (drawn(best, seed), "draw")


def _most_first(count: Count, options: Sequence[str]) -> list[str]:
    most = max(count.first_of(option) for option in options)
    return [option for option in options if count.first_of(option) == most]
