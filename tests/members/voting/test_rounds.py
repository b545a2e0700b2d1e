"""Preparing, opening, the frozen roll, and what can't change any more."""

import hashlib
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.utils.timezone import localtime

from inference.models import Replica, Slot, Swap
from members import letters, membership, urls
from members.management.commands.votes import _moment
from members.models import (
    Candidate,
    Extension,
    Mail,
    Proposal,
    PublishedBallot,
    RollEntry,
    User,
    Vote,
)
from members.models.votes import SLUG
from members.tasks import advance_votes
from members.voting import ballots, compare, rounds, shortlist
from members.voting.refusals import Refused
from members.voting.rounds import LONGEST
from tests.inference.names.conftest import model
from tests.members.voting.conftest import (
    A,
    candidate,
    deadline_passes,
    guards_off,
    in_days,
    joined,
    proposal_of,
)
from tests.waiting import at_once

pytestmark = pytest.mark.django_db


def code(call: Any, **arguments: Any) -> str:
    with pytest.raises(Refused) as caught:
        call(**arguments)
    return caught.value.code


# -- Opening ------------------------------------------------------------------------------------
def test_keeping_the_current_model_is_always_an_option(slot: Slot, admin: User) -> None:
    vote = rounds.prepare(slot=slot, slug="2026-Q4", actor=admin)
    assert vote.codes == ["keep"]
    assert code(shortlist.take_off, candidate=candidate(vote, "keep"), actor=admin) == "fixed"


def test_without_another_option_it_cannot_open(slot: Slot, voters: list[User], admin: User) -> None:
    vote = rounds.prepare(slot=slot, slug="2026-Q4", actor=admin)
    assert rounds.missing(vote) == ["no_candidate", "no_deadline"]
    found = code(rounds.open_vote, vote=vote, actor=admin, closes_at=in_days(1))
    assert found == "no_candidate"


@pytest.mark.parametrize(("days", "says"), [(None, "no_deadline"), (-0.001, "in_the_past")])
def test_it_needs_a_deadline(prepared: Vote, admin: User, days: float, says: str) -> None:
    until = None if days is None else in_days(days)
    assert code(rounds.open_vote, vote=prepared, actor=admin, closes_at=until) == says
    prepared.refresh_from_db()
    assert prepared.state == "preparing"


def test_a_model_that_runs_by_now_stands_in_the_way(prepared: Vote, admin: User) -> None:
    slot = prepared.slot
    slot.model = model("alpha")
    slot.model.repo = A.upper()
    slot.model.save()
    slot.save()
    assert code(rounds.open_vote, vote=prepared, actor=admin, closes_at=in_days(1)) == (
        "current_changed"
    )


def test_names_are_checked(slot: Slot, admin: User, prepared: Vote) -> None:
    assert code(rounds.prepare, slot=slot, slug="2026-q4", actor=admin) == "slug_taken"
    with pytest.raises(ValidationError):
        rounds.prepare(slot=slot, slug="../x", actor=admin)
    with pytest.raises(ValidationError):
        rounds.set_rules(vote=prepared, actor=admin, quorum_percent=101, public_result=False)


def test_one_open_round_for_a_slot(vote: Vote, voters: list[User], admin: User) -> None:
    other = rounds.prepare(slot=vote.slot, slug="2027-Q1", actor=admin)
    from members.voting import proposals

    third = proposals.propose(user=voters[1], slot=vote.slot, repo="acme/gamma", reason="x")
    shortlist.accept(proposal=third, vote=other, actor=admin)
    assert code(rounds.open_vote, vote=other, actor=admin, closes_at=in_days(1)) == "other_open"


@pytest.mark.parametrize("state", ["planned", "approved", "running", "returning"])
def test_a_swap_that_is_not_over_stands_in_the_way(prepared: Vote, admin: User, state: str) -> None:
    """Who votes now would not know which model is kept."""
    new = model("new-one")
    swap = Swap.objects.create(
        slot=prepared.slot, from_model=prepared.slot.model, to_model=new, state=state,
        start_at=datetime(2027, 1, 10, 5, tzinfo=UTC),
    )  # fmt: skip
    with pytest.raises(Refused) as caught:
        rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(2))
    assert caught.value.code == "swap_ahead"
    assert f"Swap {swap.pk} to New-One (" in str(caught.value)
    assert "10 January 2027, 06:00" in str(caught.value)
    Swap.objects.update(state="cancelled", finished_at=in_days(0))
    assert rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(2)).is_open


@pytest.mark.django_db(transaction=True)
def test_two_admins_open_at_once(prepared: Vote, admin: User) -> None:
    def press() -> str:
        try:
            return rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(1)).state
        except Refused as refusal:
            return refusal.code

    assert sorted(at_once([press] * 4)) == ["fixed", "fixed", "fixed", "open"]
    assert RollEntry.objects.count() == 4
    assert Mail.objects.filter(kind="vote_opened").count() == 4


def test_the_beat_opens_when_the_databases_clock_says_so(prepared: Vote, admin: User) -> None:
    rounds.schedule(vote=prepared, actor=admin, opens_at=in_days(1), closes_at=in_days(2))
    advance_votes()
    prepared.refresh_from_db()
    assert prepared.state == "preparing"
    Vote.objects.update(opens_at=in_days(-0.01))
    advance_votes()
    prepared.refresh_from_db()
    assert (prepared.state, prepared.opened_by) == ("open", admin)


def test_cancelled_before_it_opened_gives_the_proposals_back(prepared: Vote, admin: User) -> None:
    rounds.cancel(vote=prepared, actor=admin)
    assert set(Proposal.objects.values_list("state", flat=True)) == {"open"}


# -- The roll -----------------------------------------------------------------------------------
def test_the_roll_is_who_is_active_at_the_opening(
    prepared: Vote, voters: list[User], admin: User, waiting: Any
) -> None:
    membership.suspend(membership=voters[3].membership, actor=admin, reason="x")
    vote = rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(1))
    joined("Late")
    assert set(vote.roll.values_list("user", flat=True)) == {user.pk for user in voters[:3]}
    text = "".join(sorted(f"{user.public_id}\n" for user in voters[:3]))
    assert vote.roll_digest == hashlib.sha256(text.encode()).hexdigest()
    assert vote.roll_size == 3


def test_a_person_who_is_erased_leaves_her_place_on_the_roll(
    vote: Vote, voters: list[User]
) -> None:
    User.objects.get(pk=voters[0].pk).delete()
    assert vote.roll.count() == 4
    assert vote.roll.filter(user=None).count() == 1


# -- What can't change --------------------------------------------------------------------------
def refuses(action: Any) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        action()


FIXED: dict[str, Any] = {
    "slug": "other",
    "quorum_percent": 1,
    "public_result": True,
    "roll_size": 1,
    "roll_digest": "x",
    "kind": "recall",
    "state": "preparing",
    "closes_at": in_days(30),
    "result": {"winner": A},
    "ballots_digest": "x",
}


@pytest.mark.parametrize("field", FIXED)
def test_v5_postgres_refuses_changes_while_open(vote: Vote, field: str) -> None:
    refuses(lambda: Vote.objects.filter(pk=vote.pk).update(**{field: FIXED[field]}))


@pytest.mark.parametrize("field", FIXED)
def test_postgres_refuses_changes_of_what_is_over(vote: Vote, over: Any, field: str) -> None:
    over(vote)
    refuses(lambda: Vote.objects.filter(pk=vote.pk).update(**{field: FIXED[field]}))


def test_v5_options_roll_and_published_ballots_stand(
    vote: Vote, voters: list[User], admin: User, over: Any
) -> None:
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    extra = Candidate(vote=vote, position=9, code="x/y", title="x", repo="x/y")
    late = joined("Late")
    for action in (
        extra.save,
        lambda: vote.candidates.filter(code=A).update(title="Other"),
        lambda: vote.candidates.filter(code=A).delete(),
        lambda: RollEntry.objects.create(vote=vote, user=late),
        lambda: vote.roll.filter(user=voters[0]).update(user=late),
        lambda: vote.roll.filter(user=voters[0]).delete(),
        lambda: PublishedBallot.objects.create(vote=vote, receipt=1, ranking=[]),
        lambda: Vote.objects.filter(pk=vote.pk).update(state="closed"),
        lambda: Vote.objects.filter(pk=vote.pk)._raw_delete("default"),
    ):
        refuses(action)
    assert code(shortlist.take_off, candidate=candidate(vote, A), actor=admin) == "fixed"
    assert code(rounds.cancel, vote=vote, actor=admin) == "fixed"
    rules = {"quorum_percent": 50, "public_result": True}
    assert code(rounds.set_rules, vote=vote, actor=admin, **rules) == "fixed"
    late_proposal = proposal_of(A)
    Proposal.objects.filter(pk=late_proposal.pk).update(state="open")
    assert code(shortlist.accept, proposal=late_proposal, vote=vote, actor=admin) == "fixed"
    over(vote)
    for action in (
        lambda: PublishedBallot.objects.update(receipt=1),
        lambda: PublishedBallot.objects.all().delete(),
        lambda: PublishedBallot.objects.create(vote=vote, receipt=1, ranking=[]),
    ):
        refuses(action)


@pytest.mark.django_db(transaction=True)
def test_an_option_that_comes_during_the_opening_is_refused(
    prepared: Vote, voters: list[User], admin: User
) -> None:
    """The row of the vote is locked by both: whoever is second sees what the first did."""
    from members.voting import proposals

    third = proposals.propose(user=voters[1], slot=prepared.slot, repo="acme/gamma", reason="x")

    def add() -> str:
        try:
            shortlist.accept(proposal=third, vote=prepared, actor=admin)
        except Refused as refusal:
            return refusal.code
        return "added"

    def press() -> str:
        rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(1))
        return "opened"

    added, _ = at_once([add, press])
    prepared.refresh_from_db()
    frozen = [option.outlook != {} for option in prepared.candidates.all()]
    assert frozen == [True] * (4 if added == "added" else 3)


def test_what_is_said_of_options_is_frozen(vote: Vote, replica: Replica) -> None:
    before = compare.cards(vote)
    Proposal.objects.filter(repo=A).update(typed={"licence": "changed"})
    vote.slot.model.title = "Other"
    vote.slot.model.save()
    assert compare.cards(Vote.objects.get()) == before


# -- Extending ----------------------------------------------------------------------------------
def test_two_admins_extend_before_the_deadline(vote: Vote, admin: User, other_admin: User) -> None:
    later = in_days(9)
    asked = rounds.ask_extension(vote=vote, actor=admin, closes_at=later, reason="A holiday.")
    assert code(rounds.confirm_extension, extension=asked, actor=admin) == "second_admin"
    assert rounds.confirm_extension(extension=asked, actor=other_admin).closes_at == later
    assert code(rounds.confirm_extension, extension=asked, actor=other_admin) == "not_later"


def test_one_admin_alone_moves_no_deadline(vote: Vote, admin: User) -> None:
    later = in_days(9)
    asked = rounds.ask_extension(vote=vote, actor=admin, closes_at=later, reason="x")
    refuses(
        lambda: Extension.objects.filter(pk=asked.pk).update(confirmed_by=admin, confirmed_at=later)
    )
    refuses(lambda: Vote.objects.filter(pk=vote.pk).update(closes_at=later))


def test_no_extension_after_the_deadline(vote: Vote, admin: User, other_admin: User) -> None:
    """Asked before, confirmed after it, with no task running."""
    asked = rounds.ask_extension(vote=vote, actor=admin, closes_at=in_days(9), reason="x")
    deadline_passes(vote)
    assert code(rounds.confirm_extension, extension=asked, actor=other_admin) == "too_late"
    later = {"vote": vote, "actor": admin, "closes_at": in_days(9), "reason": "x"}
    assert code(rounds.ask_extension, **later) == "too_late"
    Extension.objects.update(
        confirmed_by=other_admin, confirmed_at=in_days(0), closed_before=vote.closes_at
    )
    refuses(lambda: Vote.objects.filter(pk=vote.pk).update(closes_at=asked.closes_at))


def test_a_deadline_only_moves_away(vote: Vote, admin: User, other_admin: User) -> None:
    sooner = {"vote": vote, "actor": admin, "closes_at": in_days(1), "reason": "x"}
    assert code(rounds.ask_extension, **sooner) == "not_later"
    first = rounds.ask_extension(vote=vote, actor=admin, closes_at=in_days(8), reason="x")
    second = rounds.ask_extension(vote=vote, actor=admin, closes_at=in_days(9), reason="x")
    rounds.confirm_extension(extension=first, actor=other_admin)
    assert code(rounds.confirm_extension, extension=second, actor=other_admin) == "superseded"


def test_a_vote_lasts_from_a_day_to_sixty(
    prepared: Vote, admin: User, other_admin: User, settings: Any
) -> None:
    """Nobody can cancel it and no other can open meanwhile. A local stack may be quicker."""
    settings.LOCAL_STACK = False
    for days, says in ((61, "closes_too_late"), (0.9, "closes_too_soon")):
        dates = {"opens_at": in_days(3), "closes_at": in_days(3 + days)}
        assert code(rounds.open_vote, vote=prepared, actor=admin, closes_at=in_days(days)) == says
        assert code(rounds.schedule, vote=prepared, actor=admin, **dates) == says
    vote = rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(59))
    later = {"vote": vote, "actor": admin, "closes_at": in_days(61), "reason": "x"}
    assert code(rounds.ask_extension, **later) == "closes_too_late"
    asked = rounds.ask_extension(**{**later, "closes_at": in_days(59.9)})
    assert rounds.confirm_extension(extension=asked, actor=other_admin).closes_at == asked.closes_at


# -- The time shown is the time enforced --------------------------------------------------------
@pytest.mark.parametrize(
    ("typed", "utc"),
    [
        ("2026-10-25T23:59", datetime(2026, 10, 25, 22, 59, tzinfo=UTC)),
        ("2026-10-25T01:30", datetime(2026, 10, 24, 23, 30, tzinfo=UTC)),
        ("2027-03-28T23:59", datetime(2027, 3, 28, 21, 59, tzinfo=UTC)),
    ],
)
def test_the_sunday_on_which_clocks_change(typed: str, utc: datetime) -> None:
    found = _moment(typed)
    assert found == utc
    assert f"{localtime(found):%Y-%m-%dT%H:%M}" == typed


@pytest.mark.parametrize(
    "typed", ["2026-10-25T02:30", "2027-03-28T02:30", "tomorrow", "2026-13-01T00:00"]
)
def test_a_time_that_is_no_single_moment_is_refused(typed: str) -> None:
    with pytest.raises(CommandError):
        _moment(typed)


def test_a_deadline_on_that_sunday_is_enforced_as_shown(
    prepared: Vote, voters: list[User], admin: User
) -> None:
    """Stored, read back and written in a mail it is the same minute; ballots are taken up to it."""
    until = _moment("2027-10-31T23:59")
    rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(7))
    with guards_off():
        Vote.objects.update(opened_at=until - LONGEST, closes_at=until)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT closes_at = timestamptz '2027-10-31 23:59 Europe/Madrid',"
            " closes_at = timestamptz '2027-10-31 22:59Z' FROM members_vote"
        )
        assert cursor.fetchone() == (True, True)
    mail = Mail.objects.filter(kind="vote_opened").first()
    assert mail
    assert "31 October 2027, 23:59" in " ".join(letters.compose(mail).body.split())


# -- The command --------------------------------------------------------------------------------
def test_the_command(
    prepared: Vote, voters: list[User], admin: User, capsys: pytest.CaptureFixture[str]
) -> None:
    until = f"{localtime(in_days(30)):%Y-%m-%dT12:00}"
    call_command("votes", "open", "2026-Q4", "--until", until, "--as", admin.email)
    vote = Vote.objects.get()
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    capsys.readouterr()
    for arguments in (["list"], ["show", "2026-Q4"], ["show", "2026-Q4", "--json"]):
        call_command("votes", *arguments)
    said = capsys.readouterr().out
    assert "ballots" not in said.lower()
    with pytest.raises(CommandError, match="can't be closed early"):
        call_command("votes", "close", "2026-Q4")
    deadline_passes(vote)
    call_command("votes", "close", "2026-Q4")
    assert "1 voted and 2 were needed" in capsys.readouterr().out
    call_command("votes", "show", "2026-Q4")
    assert "Quorum: 2 ballots were needed; missed" in capsys.readouterr().out
    with pytest.raises(CommandError, match="There is no vote x"):
        call_command("votes", "close", "x")


@pytest.mark.parametrize("slug", ["propose", "Proposals", "recall", "add", "recall-7", "Recall-x"])
def test_words_of_addresses_and_of_recalls_are_no_names(slot: Slot, admin: User, slug: str) -> None:
    assert code(rounds.prepare, slot=slot, slug=slug, actor=admin) == "slug_taken"


def test_no_page_has_an_address_that_a_round_could_take() -> None:
    """Words that stand where the name of a round does."""
    routes = [str(one.pattern) for one in urls.urlpatterns]
    second = {route.split("/")[1] for route in routes if re.match(r"vote/", route)}
    names = {word for word in second if re.fullmatch(SLUG.regex, word)}
    assert {"propose", "recall"} <= names <= set(rounds.TAKEN)


def test_who_leaves_is_nowhere_in_the_rows_of_votes(vote: Vote, voters: list[User]) -> None:
    """Her proposals stay without her; her ballot counts on."""
    from members.voting import proposals

    other = proposals.propose(user=voters[1], slot=vote.slot, repo="acme/gamma", reason="x")
    proposals.second(proposal=other, user=voters[0])
    ballots.cast(vote=vote, user=voters[0], ranking=[[A]])
    membership.leave(user=voters[0])
    user = User.objects.get(pk=voters[0].pk)
    assert [user.proposals.count(), user.seconds.count(), user.roll_entries.count()] == [0, 0, 0]
    assert Proposal.objects.filter(proposer=None).count() == 2
    assert vote.roll.count() == 4
