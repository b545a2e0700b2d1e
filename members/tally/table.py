"""A count in words and columns, in English and in Spanish, for a terminal."""

from collections.abc import Iterator, Sequence

from members.tally.rules import Outcome
from members.tally.schulze import Count

SENTENCES = {
    "en": {
        "ballots": "Ballots: {ballots}",
        "head": "Ballots that prefer the row to the column:",
        "beats": "{a} over {b}: {more} to {less}, by {margin}",
        "equal": "{a} and {b}: {more} each",
        "order": "Order:",
        "first": "first places: {number}",
        "no_roll": "Quorum: this file does not say how many could vote. Give --roll NUMBER.",
        "met": "Quorum: {quorum} ballots were needed; reached.",
        "missed": "Quorum: {quorum} ballots were needed; missed, so the current model is kept.",
        "tie": "Tie between {tied}; {rule}.",
        "current": "the current model is among them and is kept",
        "first_rule": "parted by first places",
        "draw": "parted by the draw",
        "seed": "SHA-256 of the ballots: {seed}",
        "result": "Result: {winner}",
        "twice": "Careful: {number} receipts stand on more than one ballot, the first {receipt}.",
        "too_many": "Careful: {ballots} ballots, but only {roll} could vote.",
    },
    "es": {
        "ballots": "Papeletas: {ballots}",
        "head": "Papeletas que prefieren la fila a la columna:",
        "beats": "{a} sobre {b}: {more} a {less}, por {margin}",
        "equal": "{a} y {b}: {more} cada una",
        "order": "Orden:",
        "first": "primeros puestos: {number}",
        "no_roll": "Quórum: este archivo no dice cuántas personas podían votar. "
        "Añade --roll NÚMERO.",
        "met": "Quórum: hacían falta {quorum} papeletas; alcanzado.",
        "missed": "Quórum: hacían falta {quorum} papeletas; no alcanzado, sigue el modelo actual.",
        "tie": "Empate entre {tied}; {rule}.",
        "current": "el modelo actual está entre ellos y sigue",
        "first_rule": "decidido por los primeros puestos",
        "draw": "decidido por el sorteo",
        "seed": "SHA-256 de las papeletas: {seed}",
        "result": "Resultado: {winner}",
        "twice": "Cuidado: {number} resguardos están en más de una papeleta, el primero {receipt}.",
        "too_many": "Cuidado: {ballots} papeletas, pero solo podían votar {roll} personas.",
    },
}


def mark(number: int) -> str:
    """The letter of an option, by its place on the ballot from 0 on: A to Z, then AA. Numbers are
    ranks, and stay theirs."""
    rest, letter = divmod(number, 26)
    return (mark(rest - 1) if rest else "") + chr(ord("A") + letter)


def named(option: str, options: Sequence[str]) -> str:
    """In a sentence."""
    return f"{option} ({mark(options.index(option))})"


def lines(count: Count, outcome: Outcome, seed: str, language: str = "en") -> Iterator[str]:
    say = SENTENCES[language]
    yield say["ballots"].format(ballots=count.ballots)
    yield ""
    yield say["head"]
    yield from _matrix(count)
    yield ""
    yield from _pairs(count, say)
    yield ""
    yield say["order"]
    for place, level in enumerate(count.levels, start=1):
        for option in sorted(level, key=count.options.index):
            first = say["first"].format(number=count.first_of(option))
            yield f"{place:>3}. {named(option, count.options)}, {first}"
    yield ""
    yield from _decision(outcome, seed, say, count.options)


def _matrix(count: Count) -> Iterator[str]:
    """Columns have the letters of the options, since their names are long."""
    width = max(len(str(count.ballots)), len(mark(len(count.options) - 1))) + 2
    longest = max(len(option) for option in count.options)
    head = "".join(f"{mark(number):>{width}}" for number in range(len(count.options)))
    yield f"    {'':<{longest}}{head}"
    for i, option in enumerate(count.options):
        cells = ["–" if i == j else str(n) for j, n in enumerate(count.pairwise[i])]
        row = "".join(f"{cell:>{width}}" for cell in cells)
        yield f"{mark(i):>2}. {option:<{longest}}{row}"


def _pairs(count: Count, say: dict[str, str]) -> Iterator[str]:
    for i, option in enumerate(count.options):
        for j in range(i + 1, len(count.options)):
            more, less, a, b = count.pairwise[i][j], count.pairwise[j][i], option, count.options[j]
            if more < less:
                more, less, a, b = less, more, b, a
            kind = "equal" if more == less else "beats"
            a, b = named(a, count.options), named(b, count.options)
            yield say[kind].format(a=a, b=b, more=more, less=less, margin=more - less)


def _decision(
    outcome: Outcome, seed: str, say: dict[str, str], options: Sequence[str]
) -> Iterator[str]:
    if outcome.quorum is None:
        yield say["no_roll"]
    else:
        yield say["met" if outcome.quorum_met else "missed"].format(quorum=outcome.quorum)
    if outcome.tied:
        rule = say["first_rule" if outcome.tie_rule == "first" else outcome.tie_rule]
        tied = ", ".join(named(option, options) for option in outcome.tied)
        yield say["tie"].format(tied=tied, rule=rule)
    yield say["seed"].format(seed=seed)
    yield say["result"].format(winner=named(outcome.winner, options))
