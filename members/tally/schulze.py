"""Schulze's method: who wins every comparison, directly or along a chain of stronger ones.

Markus Schulze, "A new monotonic, clone-independent, reversal symmetric, and Condorcet-consistent
single-winner election method", Social Choice and Welfare 36 (2011). The strength of a comparison is
its margin: how many more ballots prefer the one to the other than the other way round.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Ranking = Sequence[Sequence[str]]
"""Best first; options in one group are equal. What is not named stands below all that is."""
WRONG = "{} names an option twice, or one that is none"
Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Count:
    """Rows and columns of the matrices are in the order of `options`."""

    options: tuple[str, ...]
    ballots: int
    pairwise: Matrix
    """[i][j]: ballots that prefer i to j."""
    paths: Matrix
    """[i][j]: strength of the strongest chain from i to j; 0 where there is none."""
    first: tuple[int, ...]
    """Ballots with the option in their first place, alone or beside others."""
    levels: tuple[tuple[str, ...], ...]
    """The whole order, best first; the first level are the winners. Each sorted by name."""

    @property
    def winners(self) -> tuple[str, ...]:
        return self.levels[0]

    def first_of(self, option: str) -> int:
        return self.first[self.options.index(option)]


def count(options: Sequence[str], rankings: Iterable[Ranking]) -> Count:
    """The order of neither options nor ballots changes the result. Raises ValueError for a ranking
    that names an option twice, or one that is none."""
    if not options or len(set(options)) != len(options):
        raise ValueError("options must be named, each once")
    pairwise, first, ballots = _compare(options, rankings)
    paths = strongest(pairwise)
    return Count(
        options=tuple(options),
        ballots=ballots,
        pairwise=tuple(map(tuple, pairwise)),
        paths=tuple(map(tuple, paths)),
        first=tuple(first),
        levels=_levels(options, paths),
    )


def _compare(
    options: Sequence[str], rankings: Iterable[Ranking]
) -> tuple[list[list[int]], list[int], int]:
    """Each ballot says of each option "it is above this set of options", sets being the bits of a
    number: ten remarks for ten options instead of forty-five. Equal remarks are counted once."""
    bits = {option: 1 << number for number, option in enumerate(options)}
    size, everything = len(options), (1 << len(options)) - 1
    remarks: list[int] = []
    tops: list[str] = []
    ballots = 0
    for ranking in rankings:
        ballots += 1
        below = everything
        for group in ranking:
            if below == everything:
                tops += group
            if len(group) == 1:  # nearly always
                place = bits.get(group[0], 0)
                if not below & place:
                    raise ValueError(WRONG.format(group))
                below ^= place
                remarks.append(below << size | place)
                continue
            for option in group:
                if not below & bits.get(option, 0):
                    raise ValueError(WRONG.format(group))
                below ^= bits[option]
            remarks += [below << size | bits[option] for option in group]
    first = Counter(tops)
    return _spread(remarks, size), [first[option] for option in options], ballots


def _spread(remarks: Iterable[int], size: int) -> list[list[int]]:
    """From "above these" to a number for each pair."""
    pairwise = [[0] * size for _ in range(size)]
    for remark, number in Counter(remarks).items():
        row = pairwise[(remark & ((1 << size) - 1)).bit_length() - 1]
        below = remark >> size
        while below:
            row[below.bit_length() - 1] += number
            below ^= 1 << (below.bit_length() - 1)
    return pairwise


def strongest(pairwise: Sequence[Sequence[int]]) -> list[list[int]]:
    """A chain is as strong as its weakest link (Floyd and Warshall's way)."""
    size = range(len(pairwise))
    paths = [[max(0, pairwise[i][j] - pairwise[j][i]) for j in size] for i in size]
    for via in size:
        onward = paths[via]
        for i in size:
            if i == via or not (head := paths[i][via]):
                continue
            row = paths[i]
            for j in size:
                if j != i and row[j] < (link := min(head, onward[j])):
                    row[j] = link
    return paths


def _levels(options: Sequence[str], paths: list[list[int]]) -> tuple[tuple[str, ...], ...]:
    """Winners are those whom nobody beats; without them, the next level is found the same way."""
    left, levels = list(range(len(options))), []
    while left:
        best = [i for i in left if all(paths[i][j] >= paths[j][i] for j in left)]
        levels.append(tuple(sorted(options[i] for i in best)))
        left = [i for i in left if i not in best]
    return tuple(levels)
