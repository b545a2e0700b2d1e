"""Published ballots as files: CSV for people and spreadsheets, JSON with everything in it.

CSV: `receipt_es`, `receipt_en`, then one column for each option with its rank: 1 is best, equal
numbers are equal, an empty field is below all numbers. JSON: `options` (each with its `code`,
its title, and as `mark` the letter of its place on the ballot), `roll`, `quorum_percent` and
`ballots`, each with `receipt` and `ranking` (groups, best first).
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from members.tally.schulze import Ranking

RECEIPTS = ("receipt_es", "receipt_en")


class BadFile(Exception):
    """Not a file of published ballots; the message says where."""


@dataclass(frozen=True)
class Published:
    options: tuple[str, ...]
    ballots: tuple[tuple[str, Ranking], ...]
    """English receipt, ranking."""
    roll: int | None = None
    percent: int = 30


def read(text: str) -> Published:
    """Raises BadFile."""
    text = text.removeprefix("\ufeff")
    return _from_json(text) if text.lstrip().startswith("{") else _from_csv(text)


def doubts(found: Published, roll: int | None) -> list[tuple[str, dict[str, int | str]]]:
    """What a count of this file does not settle: sentences of `table` with what they name."""
    said: list[tuple[str, dict[str, int | str]]] = []
    times = Counter(receipt for receipt, _ in found.ballots)
    if twice := sorted(receipt for receipt, number in times.items() if number > 1):
        said.append(("twice", {"number": len(twice), "receipt": twice[0]}))
    if roll is not None and len(found.ballots) > roll:
        said.append(("too_many", {"ballots": len(found.ballots), "roll": roll}))
    return said


def _from_csv(text: str) -> Published:
    reader = csv.reader(io.StringIO(text, newline=""))
    head = next(reader, [])
    options = tuple(head[2:])
    if tuple(head[:2]) != RECEIPTS or not options or len(set(options)) != len(options):
        raise BadFile("Line 1 must name receipt_es, receipt_en and then each option once.")
    return Published(options=options, ballots=tuple(_lines(reader, head)))


def _lines(reader: "Iterator[list[str]]", head: list[str]) -> Iterator[tuple[str, Ranking]]:
    for number, fields in enumerate(reader, start=2):
        if not fields:
            continue
        if len(fields) != len(head):
            raise BadFile(f"Line {number} has {len(fields)} fields instead of {len(head)}.")
        try:
            ranking = unspell(head[2:], fields[2:])
        except ValueError:
            raise BadFile(f"Line {number}: ranks must be whole numbers from 1 on.") from None
        yield fields[1], ranking


def unspell(options: Sequence[str], ranks: Sequence[str]) -> Ranking:
    """From one rank for each option. Raises ValueError."""
    groups: dict[int, list[str]] = {}
    for option, rank in zip(options, ranks, strict=True):
        if rank.strip():
            groups.setdefault(_positive(rank), []).append(option)
    return [groups[rank] for rank in sorted(groups)]


def _positive(rank: str) -> int:
    if (number := int(rank)) < 1:
        raise ValueError(rank)
    return number


def spell(options: Sequence[str], ranking: Ranking) -> list[str]:
    """One rank for each option; the opposite of `unspell`."""
    ranks = {option: str(n) for n, group in enumerate(ranking, start=1) for option in group}
    return [ranks.get(option, "") for option in options]


def _from_json(text: str) -> Published:
    try:
        found = json.loads(text)
        options = tuple(str(option["code"]) for option in found["options"])
        ballots = tuple(_ballot(entry, options) for entry in found["ballots"])
        roll, percent = found.get("roll"), found.get("quorum_percent", 30)
        if len(set(options)) != len(options):
            raise BadFile("This file names an option twice.")
        if not (isinstance(roll, int | None) and isinstance(percent, int)):
            raise BadFile("In this file roll and quorum_percent must be whole numbers.")
    except ValueError as error:
        raise BadFile(f"This JSON can't be read: {error}.") from None
    except (KeyError, TypeError, AttributeError):
        raise BadFile("This JSON has no options and ballots in the published form.") from None
    return Published(options=options, ballots=ballots, roll=roll, percent=percent)


def _ballot(entry: dict[str, Any], options: Sequence[str]) -> tuple[str, Ranking]:
    ranking = entry["ranking"]
    named = [option for group in ranking for option in group]
    if len(set(named)) != len(named) or not set(named) <= set(options):
        raise ValueError(f"ballot {entry['receipt']['en']} names {', '.join(map(str, named))}")
    return str(entry["receipt"]["en"]), ranking
