"""Counting: textbook examples, properties, and another implementation."""

import csv
import io
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from members.tally import (
    KEEP,
    BadFile,
    Count,
    Ranking,
    count,
    decide,
    digest,
    drawn,
    quorum_of,
    read,
    spell,
    unspell,
)
from members.tally.schulze import strongest
from tests.stack import ROOT

ELECTIONS = 10_000


def ballots(text: str) -> list[Ranking]:
    """`5 ACBED` on each line: so many ballots, best first."""
    found = []
    for line in text.split(","):
        number, ranking = line.split()
        found += [[[option] for option in ranking]] * int(number)
    return found


def random_election(
    rng: random.Random, *, most_options: int = 6, most_ballots: int = 12
) -> tuple[list[str], list[Ranking]]:
    """Partial rankings with equal options."""
    options = [f"o{number}" for number in range(rng.randint(2, most_options))]
    options[rng.randrange(len(options))] = KEEP
    return options, [_ranking(rng, options) for _ in range(rng.randint(1, most_ballots))]


def _ranking(rng: random.Random, options: list[str]) -> Ranking:
    ranked = rng.sample(options, rng.randint(1, len(options)))
    groups: list[list[str]] = []
    for option in ranked:
        if groups and rng.random() < 0.25:
            groups[-1].append(option)
        else:
            groups.append([option])
    return groups


# -- Textbooks ----------------------------------------------------------------------------------
WIKIPEDIA = "5 ACBED,5 ADECB,8 BEDAC,3 CABED,7 CAEBD,2 CBADE,7 DCEBA,8 EBADC"


def test_wikipedias_example_of_45_voters() -> None:
    """https://en.wikipedia.org/wiki/Schulze_method#Example (also Schulze 2011, example 1)."""
    found = count("ABCDE", ballots(WIKIPEDIA))
    assert found.ballots == 45
    assert found.pairwise == (
        (0, 20, 26, 30, 22),
        (25, 0, 16, 33, 18),
        (19, 29, 0, 17, 24),
        (15, 12, 28, 0, 14),
        (23, 27, 21, 31, 0),
    )
    assert found.levels == (("E",), ("A",), ("C",), ("B",), ("D",))
    # Published strengths are winning votes; in a vote without gaps v votes are a margin of 2v - 45.
    published = [
        [0, 28, 28, 30, 24],
        [25, 0, 28, 33, 24],
        [25, 29, 0, 29, 24],
        [25, 28, 28, 0, 24],
        [25, 28, 28, 31, 0],
    ]
    margins = tuple(tuple(2 * v - 45 if v else 0 for v in row) for row in published)
    assert found.paths == margins


@pytest.mark.parametrize(
    ("votes", "levels"),
    [
        # Schulze 2011: example 2 (30 voters), 3 (9), 4 (9).
        ("5 ACBD,2 ACDB,3 ADCB,4 BACD,3 CBDA,3 CDBA,1 DACB,5 DBAC,4 DCBA", "D A C B"),
        ("3 ABDEC,5 ADEBC,1 ADECB,2 BADEC,2 BDECA,4 CABDE,6 CBADE,2 DBECA,5 DECAB", "B A D E C"),
        ("3 ABCD,2 DABC,2 DBCA,2 CBDA", "BD AC"),
        # Tennessee (Condorcet's textbook example): Nashville, Chattanooga, Knoxville, Memphis.
        ("42 MNCK,26 NCKM,15 CKNM,17 KCNM", "N C K M"),
        # A cycle, the weakest defeat of which gives way.
        ("4 ABC,3 BCA,2 CAB", "A B C"),
        ("1 ABC,1 BCA,1 CAB", "ABC"),
    ],
)
def test_textbook_examples(votes: str, levels: str) -> None:
    options = sorted({letter for letter in votes if letter.isalpha()})
    found = count(options, ballots(votes))
    if levels == "BD AC":  # B and D share the first place; below them only "A over C" is said
        assert found.winners == ("B", "D")
        return
    assert ["".join(level) for level in found.levels] == levels.split()


# -- Properties ---------------------------------------------------------------------------------
def elections(seed: int, number: int = ELECTIONS) -> Iterator[tuple[random.Random, list, list]]:
    rng = random.Random(seed)
    for _ in range(number):
        yield rng, *random_election(rng)


def test_a_recount_is_the_count_whatever_the_order() -> None:
    """Of options and of ballots, through both kinds of files: 10,000 elections."""
    for number, (rng, options, rankings) in enumerate(elections(1)):
        first = count(options, rankings)
        named = [(f"w-{n}-{n}-{n}", ranking) for n, ranking in enumerate(rankings)]
        seed = digest(named)
        outcome = decide(first, seed=seed, roll=30)
        mixed, shuffled = rng.sample(options, len(options)), rng.sample(named, len(named))
        text = (as_csv if number % 2 else as_json)(mixed, shuffled)
        found = read(text)
        again = count(found.options, (ranking for _, ranking in found.ballots))
        assert by_name(again) == by_name(first)
        assert digest(found.ballots) == seed
        assert decide(again, seed=seed, roll=30) == outcome


def by_name(found: Count) -> tuple[object, ...]:
    pairs = {
        (a, b): (found.pairwise[i][j], found.paths[i][j])
        for i, a in enumerate(found.options)
        for j, b in enumerate(found.options)
    }
    first = dict(zip(found.options, found.first, strict=True))
    return (pairs, first, found.levels, found.ballots)


def as_csv(options: list[str], named: list[tuple[str, Ranking]]) -> str:
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(["receipt_es", "receipt_en", *options])
    lines.writerows(["x", receipt, *spell(options, ranking)] for receipt, ranking in named)
    return text.getvalue()


def as_json(options: list[str], named: list[tuple[str, Ranking]]) -> str:
    return json.dumps(
        {
            "options": [{"code": option} for option in options],
            "roll": 30,
            "ballots": [{"receipt": {"en": r}, "ranking": ranking} for r, ranking in named],
        }
    )


def test_winners_are_what_the_definition_says() -> None:
    """Every chain tried, and Condorcet's winner where there is one: 1,000 elections."""
    for _, options, rankings in elections(2, 1000):
        found = count(options, rankings)
        margin = {
            (a, b): found.pairwise[i][j] - found.pairwise[j][i]
            for i, a in enumerate(options)
            for j, b in enumerate(options)
        }
        condorcet = [a for a in options if all(margin[a, b] > 0 for b in options if b != a)]
        assert not condorcet or found.winners == tuple(condorcet)
        for i, a in enumerate(options):
            for j, b in enumerate(options):
                if a != b:
                    assert found.paths[i][j] == best_chain(margin, options, a, b, frozenset({a}))
                assert found.paths[i][i] == 0


def best_chain(margin: dict, options: list[str], a: str, b: str, seen: frozenset[str]) -> int:
    best = max(0, margin[a, b])
    for via in options:
        if via not in seen and via != b and margin[a, via] > best:
            rest = best_chain(margin, options, via, b, seen | {via})
            best = max(best, min(margin[a, via], rest))
    return best


def test_winners_equal_those_of_pref_voting() -> None:
    """2,000 random profiles with ties and partial rankings; margins, unranked below ranked."""
    from pref_voting.margin_based_methods import beat_path
    from pref_voting.profiles_with_ties import ProfileWithTies

    rng, ties = random.Random(3), 0
    for _ in range(2000):
        options, rankings = random_election(rng, most_options=7, most_ballots=20)
        number = {option: n for n, option in enumerate(options)}
        ranks = [
            {number[option]: place for place, group in enumerate(ranking) for option in group}
            for ranking in rankings
        ]
        profile = ProfileWithTies(ranks, candidates=list(number.values()))
        profile.use_extended_strict_preference()
        theirs = tuple(sorted(options[n] for n in beat_path(profile)))
        assert count(options, rankings).winners == theirs
        ties += len(theirs) > 1
    assert ties > 100


# -- The rules ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("roll", "needed"), [(1, 1), (3, 1), (4, 2), (10, 3), (11, 4), (100, 30), (101, 31)]
)
def test_quorum_is_thirty_percent_rounded_up(roll: int, needed: int) -> None:
    assert quorum_of(roll=roll, percent=30) == needed


def outcome(text: str, *, roll: int = 10, seed: str = "s") -> tuple[str, str]:
    options = [KEEP, "a", "b", "c"]
    rankings = [[part.split("=") for part in line.split(">")] for line in text.split()]
    found = decide(count(options, rankings), seed=seed, roll=roll)
    return found.winner, found.tie_rule


def test_the_rule_for_ties() -> None:
    assert outcome("a b a") == ("a", "")
    assert outcome("a keep a>b keep>b") == ("keep", "current")
    assert outcome("a=b>keep a=b>keep a=b") == (drawn(["a", "b"], "s"), "draw")


def test_more_first_places_part_a_tie() -> None:
    text = "a>b a>b c>b>a c>b>a a>b b>a b>a"
    found = decide(
        count([KEEP, "a", "b", "c"], [[[o] for o in line.split(">")] for line in text.split()]),
        seed="s",
        roll=10,
    )
    assert (found.winner, found.tied, found.tie_rule) == ("b", (), "")
    text = "a>b a>b a>b c>b>a b>a c>b>a"
    found = decide(
        count([KEEP, "a", "b", "c"], [[[o] for o in line.split(">")] for line in text.split()]),
        seed="s",
        roll=10,
    )
    assert (found.winner, found.tied, found.tie_rule) == ("a", ("a", "b"), "first")


def test_below_the_quorum_the_current_model_is_kept() -> None:
    found = decide(count([KEEP, "a"], [[["a"]]] * 2), seed="s", roll=7)
    assert (found.winner, found.quorum, found.quorum_met, found.changes) == (KEEP, 3, False, False)
    found = decide(count([KEEP, "a"], [[["a"]]] * 3), seed="s", roll=7)
    assert (found.winner, found.quorum_met, found.changes) == ("a", True, True)


def test_the_draw_is_even_and_the_same_for_everybody() -> None:
    draws = [drawn(["a", "b", "c"], f"{seed:064x}") for seed in range(3000)]
    assert draws == [drawn(["c", "a", "b"], f"{seed:064x}") for seed in range(3000)]
    assert all(900 < draws.count(option) < 1100 for option in "abc")


def test_the_digest_is_what_the_page_says() -> None:
    """`printf` of the sorted lines and `sha256sum` give the same."""
    named: list[tuple[str, Ranking]] = [("b-b-b-b", [["y", "x"], [KEEP]]), ("a-a-a-a", [["x"]])]
    lines = "a-a-a-a x\nb-b-b-b x=y>keep\n"
    out = subprocess.run(["sha256sum"], input=lines, capture_output=True, text=True, check=True)
    assert digest(named) == out.stdout.split()[0]


@pytest.mark.parametrize(
    "rankings", [[[["a"], ["a"]]], [[["a", "a"]]], [[["z"]]]], ids=["twice", "equal", "unknown"]
)
def test_what_is_no_ranking_is_refused(rankings: list[Ranking]) -> None:
    with pytest.raises(ValueError, match="names an option twice"):
        count(["a", "b"], rankings)


def test_paths_of_one_option() -> None:
    assert strongest([[0]]) == [[0]]
    assert count(["a"], []).winners == ("a",)


# -- Files --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Line 1"),
        ("a,b,c\n", "Line 1"),
        ("receipt_es,receipt_en,x,x\n", "Line 1"),
        ("receipt_es,receipt_en,x,y\na,b,1\n", "Line 2 has 3 fields"),
        ("receipt_es,receipt_en,x,y\na,b,1,one\n", "Line 2: ranks"),
        ("receipt_es,receipt_en,x,y\na,b,0,1\n", "Line 2: ranks"),
        ("{", "can't be read"),
        ("{}", "no options"),
        ('{"options": [{"code": "x"}], "ballots": [{"receipt": {"en": "r"}, "ranking": [["y"]]}]}',
         "names y"),
        ('{"options": [{"code": "x"}], "ballots": [], "roll": "abc"}', "whole numbers"),
        ('{"options": [{"code": "x"}], "ballots": [], "quorum_percent": "30"}', "whole numbers"),
        ('{"options": [{"code": "x"}, {"code": "x"}], "ballots": []}', "twice"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named(text: str, says: str) -> None:
    with pytest.raises(BadFile, match=says):
        read(text)


def test_ranks_and_groups() -> None:
    options = ["keep", "a", "b"]
    assert spell(options, [["b"], ["keep", "a"]]) == ["2", "2", "1"]
    assert unspell(options, ["2", "2", "1"]) == [["b"], ["keep", "a"]]
    assert unspell(options, ["", "9", ""]) == [["a"]]


ALONE = """
import runpy, sys
sys.argv = ["tally", sys.argv[1]]
try:
    runpy.run_module("members.tally", run_name="__main__")
except SystemExit as end:
    ours = {m for m in sys.modules if m.split(".")[0] in ("members", "nan", "inference")}
    print("django" in sys.modules, {m for m in ours if not m.startswith("members.tally")})
    sys.exit(end.code)
"""


@pytest.mark.parametrize(
    ("lines", "more", "status", "says"),
    [
        ("q,w,1,2\nq,v,1,2\n", ["--roll", "2"], 0, ""),
        ("q,w,1,2\nq,w,1,2\n", [], 2, "1 receipts stand on more than one ballot, the first w."),
        ("q,w,1,2\nq,v,1,2\n", ["--roll", "1"], 2, "2 ballots, but only 1 could vote."),
        ("q,w,1,2\nq,w,1,2\n", ["--language", "es"], 2, "en más de una papeleta"),
    ],
)
def test_a_receipt_twice_and_too_many_ballots_are_said(
    tmp_path: Path, lines: str, more: list[str], status: int, says: str
) -> None:
    file = tmp_path / "ballots.csv"
    file.write_text(f"receipt_es,receipt_en,keep,a\n{lines}")
    run = subprocess.run(
        [sys.executable, "-m", "members.tally", str(file), *more],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == status
    assert says in run.stderr
    assert bool(run.stderr) == bool(says)


def test_it_counts_a_downloaded_file_with_no_django(tmp_path: Path) -> None:
    file = tmp_path / "ballots.csv"
    file.write_text("receipt_es,receipt_en,keep,a/x\r\nq,w-w-w-w,2,1\r\nq,v-v-v-v,,1\r\n")
    run = subprocess.run(
        [sys.executable, "-S", "-E", "-c", ALONE, str(file)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.splitlines()[:6] == [
        "Ballots: 2",
        "",
        "Ballots that prefer the row to the column:",
        "          A  B",
        " A. keep  –  0",
        " B. a/x   2  –",
    ]
    assert "a/x (B) over keep (A): 2 to 0, by 2" in run.stdout
    assert "  1. a/x (B), first places: 2" in run.stdout
    assert "Result: a/x (B)" in run.stdout
    assert run.stdout.splitlines()[-1] == "False {'members'}"


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("nonsense")
    run = subprocess.run(
        [sys.executable, "-m", "members.tally", str(file)], cwd=ROOT, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert "Line 1 must name" in run.stderr
