"""What can happen to an application."""

from functools import partial

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from inference.models import Key, Server
from members import seats, waitlist
from members.models import Application, Decision, Mail, Membership, MembershipEvent, User
from tests.people import ANSWERS, applicant, let_in, person, staff
from tests.waiting import at_once

pytestmark = pytest.mark.django_db
State = Application.State


def reject(application: Application, by: User, code: str = "unclear") -> Decision:
    outcome = waitlist.reject(applications=[application.pk], actor=by, reason_code=code)
    return outcome.decisions[0]


def mails(kind: str) -> list[tuple[str, str]]:
    return list(Mail.objects.filter(kind=kind).values_list("to", "state"))


# -- Applying --------------------------------------------------------------------------------
def test_applying_twice_is_one_entry(outsider: User) -> None:
    first = waitlist.apply(user=outsider, **ANSWERS)
    assert waitlist.apply(user=outsider, **{**ANSWERS, "builds": "something else"}) == first
    with pytest.raises(IntegrityError), transaction.atomic():
        Application.objects.create(user=outsider, builds="again")


@pytest.mark.django_db(transaction=True)
def test_ten_clicks_at_once_are_one_entry() -> None:
    outsider = person("Otto")
    found = at_once([lambda: waitlist.apply(user=outsider, **ANSWERS)] * 10)
    assert {application.pk for application in found} == {Application.objects.get().pk}


def test_an_edit_keeps_the_place_and_applying_again_does_not(waiting: Application) -> None:
    applicant("Zoe")
    waitlist.edit(application=waiting, **{**ANSWERS, "builds": "A better compiler."})
    assert Application.objects.waiting().in_order().first() == waiting
    waitlist.withdraw(application=waiting)
    again = waitlist.apply(user=waiting.user, **ANSWERS)
    assert Application.objects.waiting().in_order().last() == again


def test_place_is_a_band(waiting: Application) -> None:
    users = User.objects.bulk_create([User(email=f"p{n}@example.org") for n in range(220)])
    Application.objects.bulk_create([Application(user=user, builds="x") for user in users])
    rows = list(Application.objects.in_order())
    places = [waitlist.place(rows[n]) for n in (0, 19, 20, 50, 100, 199, 200)]
    assert places == [20, 20, 50, 100, 200, 200, None]


def test_question_and_answer(waiting: Application, admin: User) -> None:
    waitlist.ask(application=waiting.pk, actor=admin, question="Which language?")
    waiting.refresh_from_db()
    assert (waiting.state, waiting.question) == (State.NEEDS_INFORMATION, "Which language?")
    assert mails("question") == [("wanda@example.org", "due")]
    waitlist.answer(application=waiting, text="Python")
    assert (waiting.state, waiting.answer) == (State.PENDING, "Python")
    with pytest.raises(waitlist.Refused):
        waitlist.answer(application=waiting, text="again")


def test_what_is_decided_is_neither_edited_nor_withdrawn(
    waiting: Application, admin: User, no_wait: None
) -> None:
    reject(waiting, admin)
    with pytest.raises(waitlist.Refused):
        waitlist.edit(application=waiting, **ANSWERS)
    with pytest.raises(waitlist.Refused):
        waitlist.withdraw(application=waiting)


# -- W4: one transition, one mail, a row of audit each ----------------------------------------
def test_w4_rejected_then_approved(
    waiting: Application, admin: User, seats: Server, no_wait: None
) -> None:
    reject(waiting, admin)
    again = waitlist.apply(user=waiting.user, **ANSWERS)
    let_in(again, by=admin)
    actions = list(Decision.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["reject", "approve"]
    assert mails("rejected") == [("wanda@example.org", "due")]
    assert mails("welcome") == [("wanda@example.org", "due")]
    assert User.objects.get(pk=waiting.user_id).is_member


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("second", ["approve", "reject"])
def test_w4_two_admins_at_once(second: str) -> None:
    Server.objects.create(name="gpu-1", seats=10)
    admins = [staff("Alma"), staff("Bruno")]
    rows = [applicant(f"P{n}").pk for n in range(5)]

    def act(admin: User, action: str, order: list[int]) -> waitlist.Outcome:
        if action == "approve":
            return waitlist.approve(applications=order, actor=admin)
        return waitlist.reject(applications=order, actor=admin, reason_code="unclear")

    outcomes = at_once(
        [lambda: act(admins[0], "approve", rows), lambda: act(admins[1], second, rows[::-1])]
    )
    assert sorted(len(outcome.decisions) for outcome in outcomes) == [0, 5]
    assert sorted(len(outcome.already) for outcome in outcomes) == [0, 5]
    assert Decision.objects.count() == 5
    assert Mail.objects.filter(kind__in=["welcome", "rejected"]).count() == 5
    loser = next(outcome for outcome in outcomes if outcome.already)
    assert len(waitlist.who_decided(loser.already)) == 5


def test_w4_batch_costs_the_same_for_one_and_for_two_hundred(
    admin: User, seats: Server, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rows = [applicant(f"P{n}").pk for n in range(201)]
    with CaptureQueriesContext(connection) as one:
        waitlist.approve(applications=rows[:1], actor=admin)
    assert len(one) <= 21
    with django_assert_num_queries(len(one)):
        waitlist.approve(applications=rows[1:], actor=admin)
    assert Membership.objects.active().count() == 201
    assert Mail.objects.filter(kind="welcome").count() == 201
    with pytest.raises(waitlist.Refused):
        waitlist.approve(applications=rows, actor=admin)


def test_rejecting_needs_a_reason(waiting: Application, admin: User) -> None:
    for code, text in [("", ""), ("other", "  "), ("no-such", "words")]:
        with pytest.raises(waitlist.Refused):
            waitlist.reject(applications=[waiting.pk], actor=admin, reason_code=code, reason=text)
    assert Decision.objects.count() == 0


# -- Seats ------------------------------------------------------------------------------------
def test_approval_beyond_capacity_asks_first(admin: User, seats: Server) -> None:
    Server.objects.update(seats=1)
    rows = [applicant("P1").pk, applicant("P2").pk]
    with pytest.raises(waitlist.NoSeats) as full:
        waitlist.approve(applications=rows, actor=admin)
    assert (full.value.wanted, full.value.free) == (2, 1)
    assert Application.objects.waiting().count() == 2
    assert (
        len(waitlist.approve(applications=rows, actor=admin, beyond_capacity=True).decisions) == 2
    )


def test_who_is_approved_and_not_confirmed_takes_a_seat(admin: User, seats: Server) -> None:
    let_in(applicant("P1"), by=admin)
    let_in(applicant("P2", confirmed=False), by=admin)
    assert seats_taken() == 2


def seats_taken() -> int:
    return seats.count().taken


@pytest.mark.django_db(transaction=True)
def test_admins_do_not_share_the_last_seat() -> None:
    Server.objects.create(name="gpu-1", seats=1)
    admin = staff("Alma")
    rows = [applicant(f"P{n}").pk for n in range(8)]

    def approve(row: int) -> str:
        try:
            return type(waitlist.approve(applications=[row], actor=admin)).__name__
        except waitlist.NoSeats:
            return "NoSeats"

    found = at_once([partial(approve, row) for row in rows])
    assert sorted(found) == ["NoSeats"] * 7 + ["Outcome"]


# -- Undo -------------------------------------------------------------------------------------
def test_undo_takes_back_membership_key_and_mail(
    waiting: Application, admin: User, seats: Server, settings: Settings
) -> None:
    from inference import keys

    user = let_in(waiting, by=admin)
    keys.request_key(user=user, public_key=b"0" * 32)
    undone = waitlist.undo(decisions=Decision.objects.values_list("pk", flat=True), actor=admin)
    assert len(undone) == 1
    user = User.objects.get(pk=user.pk)
    assert not user.is_member
    assert Application.objects.get().state == State.PENDING
    assert mails("welcome") == [("wanda@example.org", "cancelled")]
    assert Key.objects.get().remove_at <= timezone.now()
    with pytest.raises(keys.KeyRefused):
        keys.request_key(user=user, public_key=b"1" * 32)
    assert list(MembershipEvent.objects.order_by("pk").values_list("action", flat=True)) == [
        "activated",
        "taken_back",
    ]


def test_approved_again_after_an_undo(waiting: Application, admin: User, seats: Server) -> None:
    from inference import keys

    let_in(waiting, by=admin)
    waitlist.undo(decisions=Decision.objects.values_list("pk", flat=True), actor=admin)
    user = let_in(waiting, by=admin)
    assert user.is_member
    assert sorted(mails("welcome")) == [
        ("wanda@example.org", "cancelled"),
        ("wanda@example.org", "due"),
    ]
    assert keys.request_key(user=user, public_key=b"0" * 32).state == "requested"


def test_undo_of_a_rejection_keeps_the_place(waiting: Application, admin: User) -> None:
    decision = reject(waiting, admin)
    assert waitlist.undecided(Application.objects.get())
    with pytest.raises(waitlist.Refused):  # to her it is not decided yet
        waitlist.apply(user=waiting.user, **ANSWERS)
    waitlist.undo(decisions=[decision.pk], actor=admin)
    assert Application.objects.get().state == State.PENDING
    assert mails("rejected") == [("wanda@example.org", "cancelled")]
    assert waitlist.undo(decisions=[decision.pk], actor=admin) == []


def test_undo_is_too_late_once_final(waiting: Application, admin: User, no_wait: None) -> None:
    decision = reject(waiting, admin)
    assert waitlist.undo(decisions=[decision.pk], actor=admin) == []
    assert Application.objects.get().state == State.REJECTED
