"""A swap from approval to its end, and back again from every kind of trouble."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inference.fleet import replicas
from inference.models import (
    Alert,
    CatalogModel,
    PublicName,
    Replica,
    Server,
    Slot,
    Swap,
    SwapClaim,
)
from inference.swaps import plan, run
from members.models import User
from tests.inference.fleet import rooms
from tests.inference.fleet.conftest import Told
from tests.inference.swaps.driving import PASSED, Room

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("told", "first", "second")]


@pytest.fixture
def swap(chat: Slot, new: CatalogModel, first: Replica, second: Replica, admin: User) -> Swap:
    made = plan.plan(slot=chat, model=new, actor=None, watch_seconds=4, drain_seconds=60)
    plan.approve(swap=made, actor=admin)
    return made


def models() -> list[str]:
    rows = Replica.objects.order_by("number").select_related("model")
    return [f"{row.state} {row.model.name if row.model else '-'}" for row in rows]


def parts(swap: Swap) -> list[str]:
    return list(swap.parts.values_list("state", flat=True))


def test_replica_by_replica_and_never_below_all_but_one(
    swap: Swap, chat: Slot, new: CatalogModel
) -> None:
    room = Room()
    assert room.until_over(swap).state == "done"
    assert (models(), room.least_serving) == (["serving new-model"] * 2, 1)
    assert room.drained == [1, 2]
    chat.refresh_from_db()
    assert (chat.model, chat.rotating_since) == (new, None)
    assert SwapClaim.objects.count() == 0
    names = dict(PublicName.objects.values_list("name", "retire_at"))
    assert (names["nan"], names["new-model"]) == (None, None)
    assert names["old-model"] > timezone.now() + timedelta(days=13)


def test_a_second_one_for_the_slot_is_refused(swap: Swap, chat: Slot, new: CatalogModel) -> None:
    """S7."""
    with pytest.raises(plan.SwapRefused) as refusal:
        plan.plan(slot=chat, model=new, actor=None)
    assert refusal.value.code == "slot_busy"
    Room().until_over(swap)
    third = rooms.catalog_model("third-model")
    chat.refresh_from_db()
    assert plan.plan(slot=chat, model=third, actor=None).state == "planned"


def test_two_swaps_on_one_server_follow_each_other(
    swap: Swap, machine_room: Server, admin: User
) -> None:
    small = rooms.catalog_model("small-one", kind="embedding", gpus_needed=0, capabilities=[])
    other = rooms.catalog_model("small-two", kind="embedding", gpus_needed=0, capabilities=[])
    slot = rooms.slot("nan-embed", model=small, number=2)
    rooms.serving(slot, machine_room, 3, gpus=[])
    later = plan.plan(slot=slot, model=other, actor=None, watch_seconds=1)
    plan.approve(swap=later, actor=admin)
    room = Room()
    room.round()
    later.refresh_from_db()
    swap.refresh_from_db()
    assert (swap.state, later.state, later.waiting_code) == ("running", "approved", "server_busy")
    room.until_over(swap)
    assert room.until_over(later).state == "done"


def test_preflight_touches_nothing(swap: Swap, told: Told) -> None:
    """S14."""
    room = Room()
    bad = {"name": "weights", "ok": False, "code": "weights_missing", "detail": "tests/new-model"}
    room.preflight = lambda part: [*PASSED, bad] if part.position == 2 else PASSED
    assert room.until_over(swap).state == "failed"
    assert (swap.error_code, swap.error_step) == ("weights_missing", "preflight")
    assert (room.drained, models()) == ([], ["serving old-model"] * 2)
    assert set(told.names()) <= {"gpu_preflight", "gpu_report"}
    assert Alert.objects.get().code == "swap_failed"


BROKEN_OFF = {"name": "engine", "ok": False, "code": "check_broken_off", "detail": ""}


def test_a_check_that_was_broken_off_is_asked_for_again(swap: Swap, told: Told) -> None:
    """S11: by a worker that was killed."""
    room = Room()
    room.preflight_state, room.preflight = lambda: "broken_off", lambda part: [BROKEN_OFF]
    for _ in range(3):
        room.round()
    swap.refresh_from_db()
    assert (swap.state, told.names().count("gpu_preflight") >= 2) == ("running", True)
    room.preflight_state, room.preflight = lambda: "done", lambda part: PASSED
    assert room.until_over(swap).state == "done"


def test_a_check_that_is_always_broken_off_ends_the_swap(swap: Swap) -> None:
    room = Room()
    room.preflight_state, room.preflight = lambda: "broken_off", lambda part: [BROKEN_OFF]
    assert room.until_over(swap, rounds=100).state == "failed"
    assert (swap.error_code, swap.error_step) == ("check_broken_off", "preflight")


def test_a_server_checks_for_one_replica_at_a_time(swap: Swap, told: Told) -> None:
    """A check loads the engine's whole program, beside engines that serve."""
    room = Room()

    def asked() -> list[str]:
        return [arguments[1] for name, arguments in told if name == "gpu_preflight"]

    while not asked():
        room.round()
    assert set(asked()) == {f"s{swap.pk}-p1"}
    room.round()
    assert set(asked()) == {f"s{swap.pk}-p1", f"s{swap.pk}-p2"}
    assert room.until_over(swap).state == "done"


def failing(state: str, **bad: Any) -> Room:
    """The first replica that comes to `state` with the new model."""
    return Room(
        trouble=lambda r: (
            bad if r.number == 1 and r.state == state and r.model and r.model.name == "new-model"
            else None
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("room", "code", "step"),
    [
        (
            failing("starting", engine=rooms.exited("kv_cache_too_small", "too small")),
            "kv_cache_too_small",
            "start",
        ),
        (
            failing("checking", checks=[{"ok": False, "code": "smoke_hang", "detail": ""}]),
            "smoke_hang",
            "smoke",
        ),
        (failing("serving", engine=rooms.exited("killed")), "killed", "watch"),
    ],
)
def test_what_fails_on_the_first_goes_back_and_the_second_is_never_touched(
    swap: Swap, chat: Slot, room: Room, code: str, step: str
) -> None:
    assert room.until_over(swap).state == "failed"
    assert (swap.error_code, swap.error_step) == (code, step)
    assert (models(), parts(swap)) == (["serving old-model"] * 2, ["restored", "waiting"])
    assert 2 not in room.drained
    assert room.least_serving == 1
    chat.refresh_from_db()
    assert (chat.model.name if chat.model else "", chat.rotating_since) == ("old-model", None)
    assert SwapClaim.objects.count() == 0


def test_the_only_one_that_is_left_goes_back_when_it_answers_badly(
    chat: Slot, new: CatalogModel, second: Replica, admin: User
) -> None:
    """The watcher only alerts about a slot's last replica; under a swap's eye it is a failure."""
    Replica.objects.filter(pk=second.pk).update(goal="off", state="off", instance="", model=None)
    swap = plan.plan(slot=chat, model=new, actor=None, watch_seconds=600)
    plan.approve(swap=swap, actor=admin)
    room = Room()
    while not swap.parts.filter(state="watched").exists():
        room.round()
    verdict = {"state": "bad", "code": "watch_hang"}
    Replica.objects.filter(number=1).update(watch={"bad": "watch_hang", "verdict": verdict})
    assert room.until_over(swap).state == "failed"
    assert (swap.error_code, swap.error_step) == ("watch_hang", "watch")
    assert models() == ["serving old-model", "off -"]


@pytest.mark.parametrize(
    ("code", "longer"), [("watch_behind", True), ("watch_hang", True), ("watch_busy", False)]
)
def test_one_that_is_in_doubt_is_watched_longer_but_not_for_ever(
    swap: Swap, code: str, longer: bool
) -> None:
    """The plan watches for 4 seconds; a verdict on first tokens takes minutes."""
    doubt = {"verdict": {"state": "suspect", "code": code}}
    room = Room()
    while not swap.parts.filter(state="watched").exists():
        room.round()
    Replica.objects.filter(number=1).update(watch=doubt)
    for _ in range(4):
        room.round()
    assert parts(swap)[0] == ("watched" if longer else "done")
    room.round(seconds=run.DOUBT_SECONDS)
    assert parts(swap)[0] == "done"


def test_one_that_turns_out_to_be_bad_takes_the_swap_back(swap: Swap) -> None:
    room = Room()
    while not swap.parts.filter(state="watched").exists():
        room.round()
    Replica.objects.filter(number=1).update(watch={"bad": "watch_behind"})
    assert room.until_over(swap).state == "failed"
    assert (swap.error_code, swap.error_step) == ("watch_behind", "watch")
    assert (models(), room.least_serving) == (["serving old-model"] * 2, 1)


def test_what_fails_on_the_second_takes_the_first_back_too(swap: Swap) -> None:
    bad = rooms.exited("gpu_memory", "short")
    room = Room(
        trouble=lambda r: (
            {"engine": bad}
            if r.number == 2 and r.state == "starting" and r.model and r.model.name == "new-model"
            else None
        )
    )  # fmt: skip
    assert room.until_over(swap).state == "failed"
    assert (models(), parts(swap)) == (["serving old-model"] * 2, ["restored", "restored"])
    assert room.least_serving == 1


def test_an_old_model_that_cant_come_back_leaves_the_replica_down(swap: Swap) -> None:
    room = Room(
        trouble=lambda r: (
            {"engine": rooms.exited("gpu_memory", "held")}
            if r.number == 1 and r.state == "starting"
            else None
        )
    )
    assert room.until_over(swap).state == "failed"
    assert (models(), parts(swap)) == (["failed -", "serving old-model"], ["down", "waiting"])
    assert room.least_serving == 1


def test_what_the_swap_left_down_is_started_again_by_itself(swap: Swap) -> None:
    """Its cause may be over; without a word of the swap's, whose end stands."""
    well = {"now": False}
    room = Room(
        trouble=lambda r: (
            {"engine": rooms.exited("gpu_memory", "held")}
            if r.number == 1 and r.state == "starting" and not well["now"]
            else None
        )
    )
    assert room.until_over(swap).state == "failed"
    well["now"] = True
    room.round(seconds=20)
    assert models()[0] == "failed -"
    room.round(seconds=20)
    assert Replica.objects.get(number=1).state == "starting"
    for _ in range(10):
        room.round()
    swap.refresh_from_db()
    assert (models(), swap.state) == (["serving old-model"] * 2, "failed")


def test_the_last_one_that_serves_is_not_taken_out(swap: Swap) -> None:
    """The second fails and can't come back: the first keeps the new model, and people are told."""
    room = Room(
        trouble=lambda r: (
            {"engine": rooms.exited("gpu_memory", "held")}
            if r.number == 2 and r.state == "starting"
            else None
        )
    )
    assert room.until_over(swap).state == "failed"
    assert (models(), parts(swap)) == (["serving new-model", "failed -"], ["kept", "down"])
    assert "not_restored" in Alert.objects.values_list("code", flat=True)


def test_the_drain_deadline_can_end_the_swap(swap: Swap) -> None:
    room = Room(
        trouble=lambda r: (
            {"seen": rooms.seen(sessions=1), "running": 1} if r.state == "draining" else None
        )
    )
    assert room.until_over(swap).state == "failed"
    assert (swap.error_code, swap.error_step) == ("drain_deadline", "drain")
    assert models() == ["serving old-model"] * 2


@pytest.mark.parametrize("rounds", range(1, 22, 3))
def test_aborted_at_any_moment_the_old_model_serves_again(
    swap: Swap, admin: User, rounds: int
) -> None:
    room = Room()
    for _ in range(rounds):
        room.round()
    swap.refresh_from_db()
    plan.abort(swap=swap, actor=admin)
    assert room.until_over(swap).state == "aborted"
    assert models() == ["serving old-model"] * 2
    assert room.least_serving >= 1


def test_paused_it_finishes_the_replica_under_way_and_begins_no_other(
    swap: Swap, admin: User
) -> None:
    room = Room()
    for _ in range(4):
        room.round()
    swap.refresh_from_db()
    plan.pause(swap=swap, actor=admin)
    for _ in range(40):
        room.round()
    assert models() == ["serving new-model", "serving old-model"]
    plan.resume(swap=swap, actor=admin)
    assert room.until_over(swap).state == "done"


def test_cancelled_while_it_waits_for_its_time_it_never_runs(
    chat: Slot, new: CatalogModel, admin: User
) -> None:
    """S12: the row decides, whatever message is on its way."""
    in_an_hour = timezone.now() + timedelta(hours=1)
    swap = plan.plan(slot=chat, model=new, actor=None, start_at=in_an_hour)
    plan.approve(swap=swap, actor=admin)
    room = Room()
    room.round()
    plan.cancel(swap=swap, actor=admin)
    for _ in range(3):
        room.round(seconds=3600)
    swap.refresh_from_db()
    assert (swap.state, room.drained) == ("cancelled", [])
    with pytest.raises(plan.SwapRefused):
        plan.approve(swap=swap, actor=admin)


def test_at_its_time_it_begins(chat: Slot, new: CatalogModel, admin: User) -> None:
    swap = plan.plan(
        slot=chat, model=new, actor=None, start_at=timezone.now() + timedelta(seconds=60)
    )
    plan.approve(swap=swap, actor=admin)
    room = Room()
    room.round(seconds=50)
    assert Swap.objects.get().state == "approved"
    room.round(seconds=11)
    assert Swap.objects.get().state == "running"


def test_two_admins_are_needed_unless_there_is_one(
    chat: Slot, new: CatalogModel, admin: User, settings: Any
) -> None:
    swap = plan.plan(slot=chat, model=new, actor=admin)
    settings.SWAP_SECOND_ADMIN = True
    with pytest.raises(plan.SwapRefused) as refusal:
        plan.approve(swap=swap, actor=admin)
    assert refusal.value.code == "second_admin"
    settings.SWAP_SECOND_ADMIN = False
    plan.approve(swap=swap, actor=admin)
    assert Swap.objects.get().state == "approved"


def test_a_replica_that_is_not_serving_is_waited_for(swap: Swap, second: Replica) -> None:
    room = Room(
        trouble=lambda r: {"healthy": False} if r.number == 2 and r.state == "starting" else None
    )
    Replica.objects.filter(pk=second.pk).update(state="starting")
    for _ in range(10):
        room.round()
    swap.refresh_from_db()
    assert (swap.waiting_code, room.drained) == ("others_not_serving", [])
    room.trouble = lambda r: None
    assert room.until_over(swap).state == "done"


@pytest.mark.parametrize("change", ["taken out", "put in", "removed"])
def test_a_plan_whose_replicas_are_others_when_it_begins_touches_nothing(
    change: str, swap: Swap, first: Replica, second: Replica, chat: Slot, machine_room: Server
) -> None:
    """One taken out for something else would be started; one put in, left on the old model."""
    if change == "put in":
        third = rooms.replica(chat, machine_room, 3)
        replicas.put_in_service(replica=third, actor=None)
    else:
        for one in (first, second):
            replicas.take_out(replica=one, actor=None, last=True)
        if change == "removed":
            Replica.objects.all().delete()
    before = list(Replica.objects.values_list("goal", "goal_model"))
    room = Room()
    assert room.until_over(swap).state == "failed"
    assert (swap.error_code, swap.error_step) == ("plan_outdated", "preflight")
    assert list(Replica.objects.values_list("goal", "goal_model")) == before
    chat.refresh_from_db()
    assert (chat.model, chat.rotating_since) == (swap.from_model, None)
    assert SwapClaim.objects.count() == 0


def test_tried_again_it_is_a_new_swap_with_the_same_choices(swap: Swap, admin: User) -> None:
    room = failing("checking", checks=[{"ok": False, "code": "smoke_hang", "detail": ""}])
    room.until_over(swap)
    again = plan.retry(swap=swap, actor=None)
    assert (again.retry_of, again.to_model, again.watch_seconds) == (swap, swap.to_model, 4)
    plan.approve(swap=again, actor=admin)
    assert Room().until_over(again).state == "done"
