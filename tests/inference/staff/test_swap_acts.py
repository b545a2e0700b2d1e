"""Every button of a swap's page in every state of the swap: none goes without a true answer."""

from typing import Any

import pytest
from django.utils import timezone

from inference.models import Replica, Swap
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import CHOICE, NEW_SWAP, Fleet
from tests.inference.staff.test_replicas import said
from tests.people import signed_in

pytestmark = pytest.mark.django_db
STALE = "Nothing was done: the swap has changed meanwhile. "
NOW = {
    "planned": "It waits for approval.",
    "approved": "It is approved and has not begun.",
    "running": "It is running.",
    "paused": "It is running.",
    "aborting": "It is going back to the old model.",
    "returning": "It is going back to the old model.",
    "done": "It is done.",
    "failed": "It has failed.",
    "aborted": "It has been aborted.",
    "cancelled": "It has been cancelled.",
}
FIELDS: dict[str, dict[str, Any]] = {
    "paused": {"state": "running", "paused_at": timezone.now()},
    "aborting": {"state": "running", "abort_asked": True},
}
DONE = {
    ("approve", "planned"): "You have approved it.",
    ("start", "approved"): "It starts now.",
    ("start", "running"): "It has started already.",
    ("start", "paused"): "It has started already.",
    ("cancel", "planned"): "You have cancelled it.",
    ("cancel", "approved"): "You have cancelled it.",
    ("cancel", "cancelled"): "It was cancelled already.",
    ("pause", "running"): "Told to pause. The replica under way is finished first.",
    ("pause", "paused"): "It is paused already.",
    ("resume", "running"): "It is not paused: it goes on already.",
    ("resume", "paused"): "It goes on.",
    ("abort", "running"): "Told to abort. What was changed goes back to the old model.",
    ("abort", "paused"): "Told to abort. What was changed goes back to the old model.",
    ("abort", "aborting"): "It was told to abort already.",
    ("retry", "failed"): "Planned again: this is the new swap.",
    ("retry", "aborted"): "Planned again: this is the new swap.",
    ("retry", "cancelled"): "Planned again: this is the new swap.",
}


@pytest.mark.parametrize("state", NOW)
@pytest.mark.parametrize("act", ["approve", "start", "cancel", "pause", "resume", "abort", "retry"])
def test_every_button_in_every_state(
    act: str, state: str, admin: User, other_admin: User, fleet: Fleet
) -> None:
    swap = rows.swap(fleet[0], fleet[2], other_admin, **{"state": state, **FIELDS.get(state, {})})
    before = Swap.objects.filter(pk=swap.pk).values().get()
    sentence = DONE.get((act, state), STALE + NOW[state])
    assert said(signed_in(admin), f"/staff/swaps/{swap.pk}/{act}/") == [sentence]
    if sentence not in DONE.values():
        assert Swap.objects.filter(pk=swap.pk).values().get() == before


@pytest.mark.parametrize(
    ("act", "state", "again"),
    [
        ("approve", "planned", "You had approved it already."),
        ("cancel", "planned", "It was cancelled already."),
        ("pause", "running", "It is paused already."),
        ("resume", "paused", "It is not paused: it goes on already."),
        ("abort", "paused", "It was told to abort already."),
        ("retry", "failed", "You have planned it again already: this is that swap."),
    ],
)
def test_a_second_click_is_answered_as_one(
    act: str, state: str, again: str, admin: User, other_admin: User, fleet: Fleet
) -> None:
    swap = rows.swap(fleet[0], fleet[2], other_admin, **{"state": state, **FIELDS.get(state, {})})
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/{act}/"
    assert [said(client, path), said(client, path)] == [[DONE[act, state]], [again]]


def test_resume_after_abort_says_why_nothing_happens(
    admin: User, other_admin: User, fleet: Fleet
) -> None:
    """From a tab that still shows the pause."""
    swap = rows.swap(fleet[0], fleet[2], other_admin, **FIELDS["paused"])
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/"
    said(client, f"{path}abort/")
    assert said(client, f"{path}resume/") == [STALE + "It is going back to the old model."]


def test_proposing_twice(admin: User, fleet: Fleet) -> None:
    client = signed_in(admin)
    again = "You have proposed it already: this is that swap."
    assert [said(client, NEW_SWAP, CHOICE) for _ in range(2)] == [["Proposed."], [again]]


def test_a_plan_whose_replicas_are_others_by_now_is_not_approved(
    admin: User, other_admin: User, fleet: Fleet
) -> None:
    """One that was taken out for something else would be started by the swap."""
    slot, (one, _other), new = fleet
    swap = rows.swap(slot, new, other_admin)
    Replica.objects.filter(pk=one.pk).update(goal="off")
    sentences = said(signed_in(admin), f"/staff/swaps/{swap.pk}/approve/")
    assert sentences == [
        "Replicas of the slot were put in or taken out after the swap had been planned. Plan it"
        " again."
    ]
    swap.refresh_from_db()
    assert swap.state == "planned"
