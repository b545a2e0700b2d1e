"""A draw that everybody can repeat: its seed is made of all published ballots."""

import hashlib
from collections.abc import Iterable, Sequence

from members.tally.schulze import Ranking


def digest(ballots: Iterable[tuple[str, Ranking]]) -> str:
    """SHA-256, in hex, of the lines `receipt ranking`, sorted, each with a line feed at its end.

    The receipt in its English words joined by hyphens, the ranking as `a>b=c` with equal options
    sorted: the order of ballots in a file changes nothing.
    """
    lines = sorted(f"{receipt} {canonical(ranking)}\n" for receipt, ranking in ballots)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def canonical(ranking: Ranking) -> str:
    return ">".join("=".join(sorted(group)) for group in ranking)


def drawn(options: Sequence[str], seed: str) -> str:
    """The option whose SHA-256 of `seed option` is the smallest."""
    return min(options, key=lambda option: hashlib.sha256(f"{seed} {option}".encode()).hexdigest())
