"""What follows a close: files, who sees what, ratifying, the calendar."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from inference.models import CatalogModel, Replica, Swap
from inference.swaps import plan
from members import letters, membership, outbox
from members.models import Ballot, Mail, PublishedBallot, User, Vote
from members.tally import count, decide, digest, read
from members.tasks import advance_votes
from members.voting import ballots, ratify, receipts, results, rounds
from members.voting.refusals import Refused
from tests.fakes.smtp import SmtpServer
from tests.inference.names.conftest import model
from tests.members.test_outbox import well_written
from tests.members.voting.conftest import (
    A,
    B,
    deadline_passes,
    in_days,
    with_options,
)
from tests.members.voting.test_rounds import code
from tests.people import person
from tests.stack import ROOT
from tests.waiting import at_once

pytestmark = pytest.mark.django_db
WORDS = {"announcement_es": "El domingo.", "announcement_en": "On Sunday."}


def cast(vote: Vote, *pairs: tuple[User, Any]) -> None:
    for voter, ranking in pairs:
        ballots.cast(vote=vote, user=voter, ranking=ranking)


@pytest.fixture
def won(vote: Vote, voters: list[User], over: Any) -> Vote:
    """A wins with three ballots of four."""
    cast(vote, (voters[0], [[A]]), (voters[1], [[A], [B]]), (voters[2], [["keep"], [A, B]]))
    return over(vote)


@pytest.fixture
def chosen(db: None) -> CatalogModel:
    entry = model("alpha")
    entry.repo = A
    entry.save()
    return entry


# -- Files --------------------------------------------------------------------------------------
def test_the_files_give_the_same_result(won: Vote, tmp_path: Path) -> None:
    kept = results.result(won)
    texts = ["".join(results.as_csv(won)), json.dumps(results.as_json(won), cls=DjangoJSONEncoder)]
    for text in texts:
        found = read(text)
        again = count(found.options, (ranking for _, ranking in found.ballots))
        assert [list(row) for row in again.pairwise] == kept.pairwise
        assert digest(found.ballots) == kept.digest == won.ballots_digest
        outcome = decide(again, seed=kept.digest, roll=kept.roll)
        assert (outcome.winner, outcome.quorum_met) == (A, True)
    file = tmp_path / "ballots.json"
    file.write_text(texts[1])
    command = [sys.executable, "-m", "members.tally", str(file), "--language", "es"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Quórum: hacían falta 2 papeletas; alcanzado." in run.stdout
    assert f"Resultado: {A}" in run.stdout


def test_a_receipt_finds_its_ballot_in_either_language(
    vote: Vote, voters: list[User], over: Any
) -> None:
    cast(vote, (voters[0], [[B]]), (voters[1], [[A]]))
    receipt = Ballot.objects.get(voter__user=voters[0]).receipt
    over(vote)
    for language in ("es", "en"):
        words = receipts.words(receipt, language)
        found = receipts.find(vote=vote, text=f"  {words.upper()} ")
        assert found
        assert found.ranking == [[B]]
        assert words.replace(" ", "-") in "".join(results.as_csv(vote))
    assert receipts.find(vote=vote, text="no such words here") is None


def test_words_and_numbers() -> None:
    assert receipts.words(0, "en") == "abandon abandon abandon abandon"
    assert receipts.words(2**44 - 1, "es") == "zurdo zurdo zurdo zurdo"
    assert receipts.numbers("Zurdo-zurdo-zurdo-zurdo") == {2**44 - 1}
    assert receipts.numbers("abaco ábaco ABACO abaco") == {0}
    assert len({receipts.draw() for _ in range(1000)}) == 1000


def test_nothing_of_a_result_before_the_close(vote: Vote, voters: list[User]) -> None:
    cast(vote, (voters[0], [[A]]))
    deadline_passes(vote)
    for call in (results.result, results.pairs, results.verdict, results.as_json):
        with pytest.raises(Refused, match="not over yet"):
            call(vote)
    with pytest.raises(Refused):
        list(results.as_csv(vote))
    assert results.access(vote=vote, user=voters[0]) == "nothing"


def test_who_sees_what_after_the_close(
    vote: Vote, voters: list[User], admin: User, over: Any
) -> None:
    outsider = person("Otto")
    membership.suspend(membership=voters[3].membership, actor=admin, reason="x")
    over(vote)
    readers = [voters[0], admin, outsider, User.objects.get(pk=voters[3].pk), None]
    assert [results.access(vote=vote, user=user) for user in readers] == [
        "all", "all", "nothing", "nothing", "nothing"
    ]  # fmt: skip


def test_a_community_can_choose_to_show_the_result(prepared: Vote, admin: User, over: Any) -> None:
    rounds.set_rules(vote=prepared, actor=admin, quorum_percent=30, public_result=True)
    vote = rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(1))
    assert results.access(vote=vote, user=None) == "nothing"
    assert results.access(vote=over(vote), user=None) == "result"


def test_a_sentence_for_each_pair(won: Vote) -> None:
    said = [pair.sentence for pair in results.pairs(won)]
    assert said == [
        "2 prefer alpha-7B (B) to beta-32B (C), 0 the other way round.",
        "2 prefer alpha-7B (B) to Now-One (A), 1 the other way round.",
        "Now-One (A) and beta-32B (C) are equal: 1 prefer each of them.",
    ]


# -- Ratifying ----------------------------------------------------------------------------------
def test_a_result_becomes_a_plan_that_waits_for_its_second_admin(
    won: Vote, admin: User, other_admin: User, replica: Replica, chosen: CatalogModel
) -> None:
    start = in_days(3)
    vote = ratify.ratify(vote=won, actor=admin, start_at=start, **WORDS)
    swap = Swap.objects.get()
    assert (vote.state, vote.swap) == ("ratified", swap)
    assert (swap.state, swap.to_model, swap.start_at) == ("planned", chosen, start)
    advance_votes()
    assert not Mail.objects.filter(kind="vote_planned").exists()
    plan.approve(swap=swap, actor=other_admin)
    for _ in range(2):
        advance_votes()
    assert Mail.objects.filter(kind="vote_planned").count() == 4
    [entry] = ratify.calendar()
    assert (entry.confirmed, entry.starts, entry.announcement) == (True, start, "On Sunday.")


@pytest.mark.django_db(transaction=True)
def test_v7_two_admins_ratify_at_once(
    won: Vote, admin: User, other_admin: User, replica: Replica, chosen: CatalogModel
) -> None:
    def press(actor: User) -> Any:
        def run() -> str:
            try:
                return ratify.ratify(vote=won, actor=actor, start_at=in_days(3), **WORDS).state
            except Refused as refusal:
                return refusal.code

        return run

    assert sorted(at_once([press(admin), press(other_admin), press(admin)])) == [
        "done", "done", "ratified"
    ]  # fmt: skip
    assert Swap.objects.count() == 1


def test_before_the_close_nothing_is_ratified(vote: Vote, admin: User) -> None:
    assert code(ratify.ratify, vote=vote, actor=admin, start_at=in_days(3), **WORDS) == "not_closed"


@pytest.mark.parametrize(
    ("cast_by", "says"),
    [
        ([[[A]]], "quorum"),
        ([[["keep"], [A]], [["keep"]]], "kept"),
        ([[["keep"], [A]], [[A], ["keep"]]], "kept"),
    ],
    ids=["quorum missed", "current kept", "tie with the current"],
)
def test_nothing_starts(
    vote: Vote,
    voters: list[User],
    admin: User,
    replica: Replica,
    chosen: CatalogModel,
    over: Any,
    cast_by: Any,
    says: str,
) -> None:
    cast(vote, *zip(voters, cast_by, strict=False))
    over(vote)
    assert ratify.choice(vote).code == says
    asked = {"vote": vote, "actor": admin, "start_at": in_days(3), **WORDS}
    assert code(ratify.ratify, **asked) == says
    assert code(ratify.ratify, **asked, despite_tie=True, model=chosen) == says
    advance_votes()
    assert not Swap.objects.exists()


def test_after_a_tie_nothing_starts_by_itself(
    vote: Vote, voters: list[User], admin: User, replica: Replica, over: Any
) -> None:
    """Between two others, which first places and the draw part: an admin says so in words."""
    cast(vote, (voters[0], [[A], [B]]), (voters[1], [[B], [A]]))
    result = results.result(over(vote))
    assert (result.tied, result.tie_rule) == ([A, B], "draw")
    entry = model("the-drawn")
    entry.repo = result.winner
    entry.save()
    asked = {"vote": vote, "actor": admin, "start_at": in_days(3), **WORDS}
    assert code(ratify.ratify, **asked) == "tie"
    assert not Swap.objects.exists()
    assert ratify.ratify(**asked, despite_tie=True).state == "ratified"


def test_the_result_of_a_later_round_overtakes(
    won: Vote, voters: list[User], admin: User, replica: Replica, chosen: CatalogModel, over: Any
) -> None:
    """Unless its own plan came to nothing."""
    later = with_options(won.slot, voters[1], admin, slug="2027-Q1")
    later = rounds.open_vote(vote=later, actor=admin, closes_at=in_days(7))
    cast(later, (voters[0], [[A]]), (voters[1], [[A]]))
    over(later)
    asked = {"vote": won, "actor": admin, "start_at": in_days(3), **WORDS}
    ratify.ratify(**{**asked, "vote": later})
    assert ratify.choice(won).code == code(ratify.ratify, **asked) == "outdated"
    plan.cancel(swap=Swap.objects.get(), actor=admin)
    assert ratify.ratify(**asked).state == "ratified"


def test_a_later_round_that_is_open_or_kept_overtakes(
    won: Vote, voters: list[User], admin: User, replica: Replica, chosen: CatalogModel, over: Any
) -> None:
    later = with_options(won.slot, voters[1], admin, slug="2027-Q1")
    assert ratify.choice(won).code == ""
    later = rounds.open_vote(vote=later, actor=admin, closes_at=in_days(7))
    assert ratify.choice(won).code == "outdated"
    cast(later, (voters[0], [["keep"]]), (voters[1], [["keep"]]))
    over(later)
    assert (ratify.choice(later).code, ratify.choice(won).code) == ("kept", "outdated")


def test_no_swap_of_a_slot_that_is_voted_about(
    vote: Vote,
    admin: User,
    replica: Replica,
    chosen: CatalogModel,
    over: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither planned nor approved: the ballots compare with what runs."""
    asked, other = {"slot": vote.slot, "model": chosen, "actor": admin}, person("Olga")
    with pytest.raises(plan.SwapRefused) as refusal:
        plan.plan(**asked)
    assert refusal.value.code == "vote_open"
    with monkeypatch.context() as patched:  # as if both had come at the same moment
        patched.setattr(plan, "HELD_BY", [])
        swap = plan.plan(**asked)
    with pytest.raises(plan.SwapRefused) as refusal:
        plan.approve(swap=swap, actor=other)
    assert refusal.value.code == "vote_open"
    over(vote)
    plan.approve(swap=swap, actor=other)


def test_what_a_plan_needs(won: Vote, admin: User, replica: Replica, running: CatalogModel) -> None:
    asked = {"vote": won, "actor": admin, "start_at": in_days(3)}
    choice = ratify.choice(won)
    assert (choice.code, choice.model) == ("model_missing", None)
    assert (choice.draft["name"], choice.draft["repo"], choice.draft["gpus_needed"]) == (
        "alpha-7b", A, 1
    )  # fmt: skip
    assert code(ratify.ratify, **asked, **WORDS) == "model_missing"
    assert code(ratify.ratify, **asked, **WORDS, model=running) == "other_model"
    entry = model("alpha")
    entry.repo = A
    entry.save()
    empty = {"announcement_es": " ", "announcement_en": "x"}
    assert code(ratify.ratify, **asked, **empty) == "no_announcement"
    asked["start_at"] = in_days(-1)
    assert code(ratify.ratify, **asked, **WORDS) == "in_the_past"
    won.refresh_from_db()
    assert won.state == "closed"


# -- Mails --------------------------------------------------------------------------------------
def test_every_mail_of_a_round(
    vote: Vote,
    voters: list[User],
    admin: User,
    other_admin: User,
    replica: Replica,
    chosen: CatalogModel,
    mailbox: SmtpServer,
) -> None:
    Mail.objects.exclude(kind="vote_opened").delete()
    send_all()
    cast(vote, (voters[0], [[A]]), (voters[1], [[A]]))
    ballots.mail_receipt(vote=vote, user=voters[0])
    words = receipts.words(Ballot.objects.get(voter__user=voters[0]).receipt, "en")
    send_all()
    deadline_passes(vote)
    advance_votes()
    send_all()
    vote.refresh_from_db()
    ratify.ratify(vote=vote, actor=admin, start_at=in_days(3), **WORDS)
    plan.approve(swap=Swap.objects.get(), actor=other_admin)
    advance_votes()
    send_all()
    subjects = [mail["Subject"] for mail in mailbox.mails]
    assert len(subjects) == len(set(subjects)) * 4 - 3
    told = {mail["Subject"]: mail.get_body(("plain",)).get_content() for mail in mailbox.mails}
    assert [mail["To"] for mail in mailbox.mails if "receipt" in mail["Subject"]] == [
        "ana@example.org"
    ]
    assert words in told["Your receipt for the vote 2026-Q4"]
    opened = told["Vote 2026-Q4 is open: which model runs next?"].splitlines()
    assert opened[4:7] == ["A. Now-One (the current model)", "B. alpha-7B", "C. beta-32B"]
    assert "2 of 4 who could vote did" in told["Vote 2026-Q4: the result"]
    assert any("On Sunday." in text for text in told.values())


def send_all() -> None:
    Mail.objects.filter(state="due").update(due_at=timezone.now())
    outbox.send_due()


def test_a_receipt_that_was_not_sent_before_the_close_is_gone(
    vote: Vote, voters: list[User], over: Any, mailbox: SmtpServer
) -> None:
    """Also one that a worker holds at that moment."""
    cast(vote, (voters[0], [[A]]))
    ballots.mail_receipt(vote=vote, user=voters[0])
    Mail.objects.exclude(kind="vote_receipt").delete()
    Mail.objects.update(state="sending")
    over(vote)
    Mail.objects.filter(kind="vote_receipt").update(state="due")
    send_all()
    assert ["receipt" in mail["Subject"] for mail in mailbox.mails] == [False] * 4  # results
    advance_votes()
    assert not Mail.objects.filter(kind="vote_receipt").exists()


@pytest.mark.parametrize("language", ["es", "en"])
def test_mails_are_well_written(
    won: Vote, voters: list[User], language: str, admin: User, other_admin: User,
    replica: Replica, chosen: CatalogModel,
) -> None:  # fmt: skip
    ratify.ratify(
        vote=won, actor=admin, start_at=in_days(3),
        announcement_es="<b>R&D</b>", announcement_en="<b>R&D</b>",
    )  # fmt: skip
    plan.approve(swap=Swap.objects.get(), actor=other_admin)
    for kind in ("vote_result", "vote_planned"):
        mail = Mail(
            kind=kind, user=voters[0], to="x@y.z", language=language, params={"vote": won.pk}
        )
        well_written(letters.compose(mail), language)


def test_history_has_all_rounds(won: Vote) -> None:
    assert list(Vote.objects.history()) == [won]
    assert PublishedBallot.objects.filter(vote=won).count() == 3
