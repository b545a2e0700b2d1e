"""After the close: the result, and all ballots for everybody to count again."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from members.membership import in_community
from members.models import PublishedBallot, Vote
from members.tally import KEEP, Ranking, count, decide, digest, mark, spell
from members.voting import receipts
from members.voting.refusals import Refused

METHOD = "Schulze (margins)"


@dataclass(frozen=True, kw_only=True)
class Result:
    """As it is kept in `Vote.result`; matrices are in the order of `options`."""

    options: list[str]
    ballots: int
    roll: int
    quorum: int
    """Ballots that were needed."""
    quorum_met: bool
    winner: str
    tied: list[str]
    tie_rule: str
    """`current`, `first`, `draw`, or empty."""
    first: list[int]
    levels: list[list[str]]
    pairwise: list[list[int]]
    paths: list[list[int]]
    digest: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def keeps(self) -> bool:
        return self.winner == KEEP


@dataclass(frozen=True)
class Pair:
    """Two options compared: `a` is the one that more ballots prefer, if there is one."""

    a: str
    b: str
    more: int
    less: int
    sentence: str


def counted(vote: Vote, ballots: Iterable[tuple[int, Ranking]]) -> Result:
    """The receipts take part in the draw's seed, so they are counted with."""
    spelt = [(file_words(receipt, "en"), ranking) for receipt, ranking in ballots]
    options = vote.codes
    found = count(options, (ranking for _receipt, ranking in spelt))
    seed = digest(spelt)
    roll = vote.roll_size or 0
    outcome = decide(found, seed=seed, roll=roll, percent=vote.quorum_percent)
    return Result(
        options=options,
        ballots=found.ballots,
        roll=roll,
        quorum=outcome.quorum or 0,
        quorum_met=outcome.quorum_met,
        winner=outcome.winner,
        tied=list(outcome.tied),
        tie_rule=outcome.tie_rule,
        first=list(found.first),
        levels=[list(level) for level in found.levels],
        pairwise=[list(row) for row in found.pairwise],
        paths=[list(row) for row in found.paths],
        digest=seed,
    )


def file_words(receipt: int, language: str) -> str:
    """One field of a file: `abandon-ability-able-about`."""
    return receipts.words(receipt, language).replace(" ", "-")


def result(vote: Vote) -> Result:
    """Raises Refused before the close: until then there is none anywhere."""
    if not vote.is_over:
        raise Refused("not_closed")
    return Result(**vote.result)


def access(*, vote: Vote, user: Any) -> str:
    """`all` for members and admins after the close, `result` for others if the round is public."""
    if not vote.is_over:
        return "nothing"
    if in_community(user):
        return "all"
    return "result" if vote.public_result else "nothing"


# -- In words -----------------------------------------------------------------------------------
def titles(vote: Vote) -> dict[str, str]:
    return {candidate.code: candidate.title for candidate in vote.candidates.all()}


def marks(vote: Vote) -> dict[str, str]:
    """The letter of each option: the same on the ballot, the result, in its files and the program
    that counts again."""
    return {code: mark(number) for number, code in enumerate(vote.codes)}


def marked(vote: Vote) -> dict[str, str]:
    """Titles for sentences, with their letters."""
    letters = marks(vote)
    return {code: f"{title} ({letters[code]})" for code, title in titles(vote).items()}


def pairs(vote: Vote) -> list[Pair]:
    """A sentence for each pair, those that decided most clearly first."""
    found, named = result(vote), marked(vote)
    size = range(len(found.options))
    rows = [_pair(found, named, i, j) for i in size for j in size if i < j]
    return sorted(rows, key=lambda pair: pair.less - pair.more)


def _pair(found: Result, named: dict[str, str], i: int, j: int) -> Pair:
    if found.pairwise[i][j] < found.pairwise[j][i]:
        i, j = j, i
    a, b = found.options[i], found.options[j]
    more, less = found.pairwise[i][j], found.pairwise[j][i]
    said = {"a": named[a], "b": named[b], "more": more, "less": less}
    if more == less:
        text = _("%(a)s and %(b)s are equal: %(more)d prefer each of them.")
    else:
        text = _("%(more)d prefer %(a)s to %(b)s, %(less)d the other way round.")
    return Pair(a=a, b=b, more=more, less=less, sentence=text % said)


def verdict(vote: Vote) -> str:
    """The result in one or two sentences."""
    found, named = result(vote), titles(vote)
    if not found.quorum_met:
        text = _("%(ballots)d voted and %(quorum)d were needed: the current model stays.")
        return text % {"ballots": found.ballots, "quorum": found.quorum}
    said = {"winner": named[found.winner], "tied": ", ".join(named[code] for code in found.tied)}
    return {
        "": _("%(winner)s wins.") if not found.keeps else _("The current model stays: %(winner)s."),
        "current": _("A tie between %(tied)s: the current model is among them and stays."),
        "first": _("A tie between %(tied)s; %(winner)s has more first places."),
        "draw": _("A tie between %(tied)s, also in first places; the draw says %(winner)s."),
    }[found.tie_rule] % said


# -- Files --------------------------------------------------------------------------------------
def _rows(vote: Vote) -> "QuerySet[PublishedBallot, tuple[int, Ranking]]":
    """By receipt: as good an order as any, since receipts are random."""
    if not vote.is_over:
        raise Refused("not_closed")
    ballots = PublishedBallot.objects.filter(vote=vote).order_by("receipt")
    return ballots.values_list("receipt", "ranking")


def as_csv(vote: Vote) -> Iterator[str]:
    """Line by line; read by `python -m members.tally` and by any spreadsheet."""
    options, rows = vote.codes, _rows(vote)
    yield _line(["receipt_es", "receipt_en", *options])
    for receipt, ranking in rows:
        words = [file_words(receipt, "es"), file_words(receipt, "en")]
        yield _line([*words, *spell(options, ranking)])


def _line(fields: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(fields)
    return text.getvalue()


def as_json(vote: Vote) -> dict[str, Any]:
    """Everything that a recount needs, and what we say came out."""
    rows, found = _rows(vote), result(vote)
    named, letters = titles(vote), marks(vote)
    return {
        "vote": vote.slug,
        "method": METHOD,
        "opened": vote.opened_at,
        "closed": vote.closes_at,
        "roll": found.roll,
        "roll_sha256": vote.roll_digest,
        "quorum_percent": vote.quorum_percent,
        "options": [
            {"mark": letters[code], "code": code, "title": named[code]} for code in found.options
        ],
        "ballots": [
            {
                "receipt": {"es": file_words(receipt, "es"), "en": file_words(receipt, "en")},
                "ranking": ranking,
            }
            for receipt, ranking in rows
        ],
        "result": vote.result,
    }
