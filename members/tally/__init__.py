"""Counting ballots: Schulze's method, the quorum and the rule for ties. Nothing else is needed.

No Django and nothing of this project, so that anybody can read it whole, and run it on a downloaded
file: `python -m members.tally ballots.csv`.
"""

from members.tally.draw import digest, drawn
from members.tally.files import BadFile, Published, doubts, read, spell, unspell
from members.tally.rules import KEEP, Outcome, decide, quorum_of
from members.tally.schulze import Count, Ranking, count
from members.tally.table import mark

__all__ = [
    "KEEP",
    "BadFile",
    "Count",
    "Outcome",
    "Published",
    "Ranking",
    "count",
    "decide",
    "digest",
    "doubts",
    "drawn",
    "mark",
    "quorum_of",
    "read",
    "spell",
    "unspell",
]
