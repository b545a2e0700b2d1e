"""Is a replica's time to first token far beyond what its load explains? No clock, no network.

Compared is a mean with a mean, over requests of members: with the slot's other replicas in the same
minutes, or, where there is none, with the replica's own beginning. A longer prompt may take longer,
so the bound grows with the prompt tokens that had to be read for each request: a replica whose
prefix cache is still empty has more of them. Against its own past it grows with the requests a
second as well, which the others of a slot have in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from inference.watch.samples import Counts, Sample

WINDOW = 300.0
"""Seconds: of the recent past that is looked at, and of the beginning that is a measure."""
PART, PARTS = 50.0, 3
"""Seconds that a part has at least, and how many in a row have to be late. Probes come every 60 s,
or 15 s when something is odd: it is between two and a half and three minutes."""
ENOUGH = 10
"""Requests in a part below which a mean is chance."""
TIMES, SECONDS = 4.0, 2.0
"""Of the measure, and at least, before it counts as late."""


@dataclass(frozen=True, kw_only=True)
class FirstTokens:
    waited: float
    count: float
    read: float
    """Prompt tokens that were not found in the prefix cache."""
    seconds: float

    @classmethod
    def over(cls, samples: Sequence[Sample]) -> Self:
        told = [(sample.at, sample.counts) for sample in samples if sample.counts is not None]
        steps = [(a, b, y - x) for (x, a), (y, b) in pairwise(told) if _goes_on(a, b)]
        waits = [after.ttft.since(before.ttft) for before, after, _ in steps]
        return cls(
            waited=sum(wait.sum for wait in waits),
            count=sum(wait.count for wait in waits),
            read=max(0.0, sum(after.read - before.read for before, after, _ in steps)),
            seconds=sum(seconds for _, _, seconds in steps),
        )

    def late(self, usual: "FirstTokens", *, own: bool) -> bool:
        """Nothing is concluded from few requests on either side."""
        if self.count < ENOUGH or usual.count < ENOUGH:
            return False
        more = _times(self.read / self.count, usual.read / usual.count)
        if own:
            more *= _times(self.count / self.seconds, usual.count / usual.seconds)
        return self.waited / self.count > max(SECONDS, TIMES * more * usual.waited / usual.count)


def parts_late(samples: Sequence[Sample], others: Sequence[Sequence[Sample]]) -> int | None:
    """How many parts in a row, up to now, were late against the others; None: can't be compared."""
    since = samples[-1].at - WINDOW
    measure = _together([FirstTokens.over(_after(series, since)) for series in others])
    if measure.count < ENOUGH:
        return None
    return _late_in_a_row(_after(samples, since), measure, own=False)


def parts_later_than_once(samples: Sequence[Sample]) -> int:
    """The same against its own first minutes, once those are over."""
    first = [sample for sample in samples if sample.at <= samples[0].at + WINDOW]
    recent = _after(samples, max(samples[-1].at - WINDOW, first[-1].at))
    return _late_in_a_row(recent, FirstTokens.over(first), own=True)


def _late_in_a_row(samples: Sequence[Sample], measure: FirstTokens, *, own: bool) -> int:
    for number, part in enumerate(_parts(samples)):
        if not FirstTokens.over(part).late(measure, own=own):
            return number
    return len(_parts(samples))


def _parts(samples: Sequence[Sample]) -> list[Sequence[Sample]]:
    """The newest first; each begins with the sample that the one before it ends with."""
    found: list[Sequence[Sample]] = []
    end = len(samples) - 1
    for begin in range(len(samples) - 2, -1, -1):
        if len(found) < PARTS and samples[end].at - samples[begin].at >= PART:
            found.append(samples[begin : end + 1])
            end = begin
    return found


def _after(samples: Sequence[Sample], since: float) -> list[Sample]:
    return [sample for sample in samples if sample.at >= since]


def _together(several: Sequence[FirstTokens]) -> FirstTokens:
    return FirstTokens(
        waited=sum(one.waited for one in several),
        count=sum(one.count for one in several),
        read=sum(one.read for one in several),
        seconds=max((one.seconds for one in several), default=0.0),
    )


def _goes_on(before: Counts, after: Counts) -> bool:
    """Not across a restart, where totals begin anew."""
    return after.ttft.count >= before.ttft.count


def _times(now: float, then: float) -> float:
    """At least 1: less to do is no reason to be judged more strictly."""
    return max(1.0, now / then) if then > 0 else 1.0
