"""The result, its files, and who may see what of them."""

import csv
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from members.models import Ballot, Candidate, User, Vote
from members.voting import ballots, receipts, rounds
from tests.members.voting.conftest import A, B, guards_off, in_days
from tests.members.voting.pages.conftest import text
from tests.pages.markup import words as read_words
from tests.people import signed_in

pytestmark = pytest.mark.django_db
PAGE = "/vote/2026-Q4/"
FILES = ("check/", "ballots.csv", "ballots.json")


def cast_all(vote: Vote, voters: list[User]) -> list[int]:
    """Three of four, alpha before the current model. Their receipts."""
    rankings = ([[A], ["keep"]], [[A], [B]], [["keep"], [B]])
    for voter, ranking in zip(voters, rankings, strict=False):
        ballots.cast(vote=vote, user=voter, ranking=ranking)
    return [row.receipt for row in Ballot.objects.order_by("voter")]


@pytest.fixture
def closed(vote: Vote, voters: list[User], over: Any) -> Vote:
    cast_all(vote, voters)
    return over(vote)


# -- What it says -------------------------------------------------------------------------------
def test_the_result_in_words_and_numbers(closed: Vote, ana: Client) -> None:
    said = text(ana.get(f"{PAGE}result/"))
    for words in (
        "alpha-7B wins.",
        "ballots 3 could vote 4 needed (quorum) 2",
        "quorum reached no tie",
        "2 prefer alpha-7B (B) to Now-One (A), 1 the other way round.",
        "B. alpha-7B (2 first places)",
        "An admin makes a plan of it, with a date",
    ):
        assert words in said


def test_quorum_missed_keeps_the_current_model(vote: Vote, over: Any, ana: Client) -> None:
    ana.post(PAGE, {f"rank:{A}": "1"})
    over(vote)
    said = text(ana.get(f"{PAGE}result/"))
    assert "1 voted and 2 were needed: the current model stays." in said
    assert "quorum missed" in said
    assert "Nothing changes: the current model goes on." in said
    assert "tie" not in said.split("What follows")[0]


def test_nobody_voted_is_no_tie(vote: Vote, over: Any, ana: Client) -> None:
    over(vote)
    said = text(ana.get(f"{PAGE}result/")).split("What follows")[0]
    assert "0 voted and 2 were needed" in said
    assert "tie" not in said


def test_the_tie_rule_is_named(vote: Vote, voters: list[User], over: Any, ana: Client) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    ballots.cast(vote=vote, user=voters[1], ranking=[[B]])
    over(vote)
    said = text(ana.get(f"{PAGE}result/"))
    assert "tie rule applied" in said
    assert "After a tie nothing starts by itself" in said


# -- Who ----------------------------------------------------------------------------------------
def test_before_the_close_there_is_none_for_anybody(
    vote: Vote, ana: Client, alma: Client, outsider: User
) -> None:
    for path in ("result/", *FILES):
        for client in (ana, alma):
            assert client.get(f"{PAGE}{path}").url == PAGE
        assert signed_in(outsider).get(f"{PAGE}{path}").status_code == 403
        assert Client().get(f"{PAGE}{path}").url.startswith("/accounts/login/")


def test_a_result_that_is_not_public_is_for_members(closed: Vote, outsider: User) -> None:
    for path in ("result/", *FILES):
        assert signed_in(outsider).get(f"{PAGE}{path}").status_code == 403
        assert Client().get(f"{PAGE}{path}").status_code == 302


def test_a_public_result_shows_everybody_the_numbers_and_nobody_a_ballot(
    prepared: Vote, voters: list[User], admin: User, over: Any, outsider: User
) -> None:
    rounds.set_rules(vote=prepared, actor=admin, quorum_percent=30, public_result=True)
    vote = rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(1))
    words = receipts.words(cast_all(vote, voters)[0], "en")
    assert Client().get(f"{PAGE}result/").status_code == 302
    over(vote)
    for client in (Client(headers={"accept-language": "en"}), signed_in(outsider)):
        said = text(client.get(f"{PAGE}result/"))
        assert "alpha-7B wins." in said
        assert "Check it yourself" not in said
        found = text(client.post(f"{PAGE}result/", {"receipt": words}))
        assert "It was counted as" not in found
        for path in FILES:
            assert client.get(f"{PAGE}{path}").url == f"{PAGE}result/"


# -- Checking -----------------------------------------------------------------------------------
def test_she_finds_her_ballot_by_its_words(
    vote: Vote, voters: list[User], over: Any, ana: Client
) -> None:
    receipt = cast_all(vote, voters)[0]
    over(vote)
    for language in ("es", "en"):
        answer = ana.post(f"{PAGE}result/", {"receipt": receipts.words(receipt, language)})
        assert "It was counted as: alpha-7B (B) Now-One (A)" in text(answer)
    for nothing in ("", "one two", "abandon abandon abandon abandon", "x" * 5000):
        assert "No ballot has this receipt." in text(
            ana.post(f"{PAGE}result/", {"receipt": nothing})
        )


def test_files_hold_all_ballots_and_count_to_the_same(
    closed: Vote, ana: Client, tmp_path: Path
) -> None:
    """By the program that anybody can run on them, without Django."""
    for name, more in (("ballots.json", []), ("ballots.csv", ["--roll", "4"])):
        answer = ana.get(f"{PAGE}{name}")
        assert "no-store" in answer["Cache-Control"]
        kind = name.partition(".")[2]
        assert answer["Content-Disposition"] == (
            f'attachment; filename="nan-2026-Q4-ballots.{kind}"'
        )
        body = answer.getvalue()
        (tmp_path / name).write_bytes(body)
        command = [sys.executable, "-m", "members.tally", str(tmp_path / name), *more]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert f"Result: {A} (B)" in said
        assert closed.ballots_digest in said
    assert json.loads((tmp_path / "ballots.json").read_text())["result"] == closed.result
    rows = list(csv.reader(io.StringIO((tmp_path / "ballots.csv").read_text())))
    assert rows[0] == ["receipt_es", "receipt_en", "keep", A, B]
    assert sorted(row[2:] for row in rows[1:]) == [["", "1", "2"], ["1", "", "2"], ["2", "1", ""]]


def test_the_program_that_is_downloaded_counts_with_nothing_else_of_ours(
    closed: Vote, ana: Client, tmp_path: Path
) -> None:
    """As the page says it, in a folder with nothing else."""
    page = ana.get(f"{PAGE}check/").content.decode()
    found = re.search(r'href="([^"]+nan-tally.zip)"', page)
    assert found
    for name, answer in (
        ("nan-tally.zip", Client().get(found[1])),
        ("nan-2026-Q4-ballots.json", ana.get(f"{PAGE}ballots.json")),
        ("nan-2026-Q4-ballots.csv", ana.get(f"{PAGE}ballots.csv")),
    ):
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
        (tmp_path / name).write_bytes(answer.getvalue())
    with zipfile.ZipFile(tmp_path / "nan-tally.zip") as packed:
        packed.extractall(tmp_path)
    code = [read_words(one) for one in re.findall("<code>(.+?)</code>", page)]
    said = [one.removeprefix("python3 -m ") for one in code if one.startswith("python3")]
    assert len(said) == 2
    for arguments in said:
        command = [sys.executable, "-S", "-m", *arguments.split()]
        run = subprocess.run(
            command, cwd=tmp_path, env={}, check=True, capture_output=True, text=True
        )
        assert run.stdout.splitlines()[-1] == f"Result: {A} (B)"
        assert closed.ballots_digest in run.stdout
        assert "Quorum: 2 ballots were needed; reached." in run.stdout


def test_an_option_has_one_letter_wherever_it_stands(
    vote: Vote, voters: list[User], over: Any, ana: Client, tmp_path: Path, capsys: Any
) -> None:
    """In the order of the ballot, though the last of it has won; numbers are ranks only."""
    ana.post(PAGE, {f"rank:{B}": "1", "rank:keep": "2"})
    ballot = text(ana.get(PAGE))
    assert re.findall(r"\b([A-C])\. (?:Now-One|alpha-7B|beta-32B)", ballot) == [*"ABCABC"]
    assert "beta-32B (C) Now-One (A) Not ranked: alpha-7B (B)" in text(ana.get(f"{PAGE}receipt/"))
    ballots.cast(vote=vote, user=voters[1], ranking=[[B], [A]])
    over(vote)
    said = text(ana.get(f"{PAGE}result/"))
    assert "The order C. beta-32B (2 first places) A. Now-One" in said
    assert "2 prefer beta-32B (C) to alpha-7B (B), 0 the other way round." in said
    table = (
        "Prefer the row to the column A B C A. Now-One – 1 0 B. alpha-7B 1 – 0 C. beta-32B 2 2 –"
    )
    assert table in said
    assert table in text(ana.get(f"{PAGE}check/"))
    published = json.loads(ana.get(f"{PAGE}ballots.json").getvalue())
    assert [(one["mark"], one["code"]) for one in published["options"]] == [
        ("A", "keep"), ("B", A), ("C", B),
    ]  # fmt: skip
    for name, more in (("ballots.json", []), ("ballots.csv", ["--roll", "4"])):
        (tmp_path / name).write_bytes(ana.get(f"{PAGE}{name}").getvalue())
        command = [sys.executable, "-m", "members.tally", str(tmp_path / name), *more]
        counted = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert re.findall(r"^ ([A-Z])\. (\S+)", counted, re.M) == [
            ("A", "keep"), ("B", A), ("C", B),
        ]  # fmt: skip
        assert f"{B} (C) over {A} (B): 2 to 0, by 2" in counted
        assert f"  1. {B} (C), first places: 2" in counted
    call_command("votes", "show", "2026-Q4")
    assert f"C. {B}  beta-32B" in capsys.readouterr().out


def test_the_page_to_count_again_shows_our_table(closed: Vote, ana: Client) -> None:
    page = ana.get(f"{PAGE}check/").content.decode()
    assert 'data-file="/vote/2026-Q4/ballots.json"' in page
    assert "nan-2026-Q4-ballots.csv --roll 4 --quorum 30" in read_words(page)
    assert closed.ballots_digest in page


# -- Cost ---------------------------------------------------------------------------------------
def test_ten_thousand_ballots_of_ten_options_stay_small(
    vote: Vote, over: Any, ana: Client, voters: list[User]
) -> None:
    """The page is made of the result, never of ballots: as many queries, as many bytes."""
    options = ["keep", *(f"organisation-{n}/a-model-with-a-long-name-{n}B" for n in range(9))]
    over(vote)
    size = range(10)
    many = {
        **vote.result,
        "options": options,
        "ballots": 10_000,
        "roll": 12_000,
        "quorum": 3_600,
        "quorum_met": True,
        "winner": "keep",
        "tied": [],
        "tie_rule": "",
        "first": [1_000] * 10,
        "levels": [[option] for option in options],
        "pairwise": [[0 if i == j else 4_321 for j in size] for i in size],
        "paths": [[0 if i == j else 1_234 for j in size] for i in size],
    }
    with guards_off(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE members_candidate DISABLE TRIGGER USER")
        Vote.objects.filter(pk=vote.pk).update(result=many)
        Candidate.objects.filter(vote=vote).exclude(code="keep").delete()
        Candidate.objects.bulk_create(
            Candidate(vote=vote, position=n, code=code, title=code.partition("/")[2], repo=code)
            for n, code in enumerate(options)
            if n
        )
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE members_candidate ENABLE TRIGGER USER")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    for path in ("result/", "check/"):
        assert len(ana.get(f"{PAGE}{path}").content) < 100_000
    with CaptureQueriesContext(
        connection,
    ) as queries:
        ana.get(f"{PAGE}result/")
    assert len(queries) < 15
    assert not any("publishedballot" in query["sql"] for query in queries)
