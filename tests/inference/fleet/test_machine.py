"""Each state of a replica: what it waits for, where it goes, and that it waits no longer."""

from datetime import timedelta

import pytest
from django.utils import timezone

from inference.fleet.change import ReplicaChanged
from inference.fleet.goals import set_goal
from inference.fleet.machine import RETRIES, Sight, advance
from inference.models import CatalogModel, FleetEvent, Replica, Server
from tests.inference.fleet import rooms
from tests.inference.fleet.conftest import Told
from tests.inference.fleet.rooms import exited, look, running, say, seen

pytestmark = pytest.mark.django_db
SERVED = [{"name": "chat", "ok": True, "code": "", "detail": "", "seconds": 0.1}]


def to_stopping(replica: Replica) -> Replica:
    replica = look(replica)
    assert replica.state == "draining"
    replica = look(replica, seen=seen(), running=0)
    return look(replica, seen=seen(), running=0)


def to_starting(replica: Replica, on: Server) -> Replica:
    replica = to_stopping(replica)
    say(on, engines={replica.instance: exited()})
    return look(replica)


def test_a_new_goal_drains_stops_starts_checks_joins_and_serves(
    first: Replica, machine_room: Server, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new)
    replica = look(first)
    assert replica.state == "draining"
    replica = look(replica, seen=seen(in_service=True), running=0)
    assert (replica.state, replica.idle_looks) == ("draining", 0)  # the pool has not let go yet
    replica = look(replica, seen=seen(sessions=2), running=3)
    assert (replica.state, replica.in_flight) == ("draining", 3)
    replica = look(replica, seen=seen(), running=0)
    assert (replica.state, replica.in_flight) == ("draining", 0)  # once may be between two
    replica = look(replica, seen=seen(), running=0)
    assert (replica.state, told) == ("stopping", [])
    old_instance = replica.instance
    replica = look(replica)
    assert told == [("gpu_stop", ("one", old_instance, 60))]
    say(machine_room, engines={old_instance: exited(left=1)})
    assert look(replica).state == "stopping"  # a process of it still lives
    say(machine_room, engines={old_instance: exited()})
    replica = look(replica)
    assert (replica.state, replica.model) == ("starting", new)
    assert replica.instance not in ("", old_instance)
    assert replica.names == ["new-model", "nan"]
    say(machine_room)
    replica = look(replica)
    assert told[-1][0] == "gpu_start"
    assert told[-1][1][1]["instance"] == replica.instance
    say(machine_room, engines={replica.instance: running(progress=40)})
    assert look(replica, healthy=False).state == "starting"
    replica = look(replica, healthy=True)
    assert replica.state == "checking"
    asked: list[int] = []
    replica = look(replica, check=lambda r: asked.append(r.pk))
    look(replica, check=lambda r: asked.append(r.pk))
    assert asked == [replica.pk]
    Replica.objects.filter(pk=replica.pk).update(checks=SERVED)
    replica = look(replica)
    assert replica.state == "joining"
    assert look(replica, seen=seen(status="DRAIN 1/3")).state == "joining"
    replica = look(replica, seen=seen(in_service=True, status="UP"))
    assert (replica.state, replica.model, replica.error_code) == ("serving", new, "")
    states = list(FleetEvent.objects.filter(replica=replica).values_list("what", flat=True))
    assert states == ["draining", "stopping", "starting", "checking", "joining", "serving"]


def test_what_was_sent_is_sent_again_only_after_a_while(
    first: Replica, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new)
    replica = look(to_stopping(first))
    asked_at = replica.told_at
    assert asked_at is not None
    for seconds, asked in ((0.5, 1), (2.9, 1), (3.1, 2)):
        advance(replica, Sight(now=asked_at + timedelta(seconds=seconds)))
        assert told.names() == ["gpu_stop"] * asked


def test_a_goal_taken_back_while_draining_costs_no_restart(
    first: Replica, old: CatalogModel, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new)
    replica = look(first)
    set_goal(replica, old)
    replica = look(replica, seen=seen(sessions=1))
    assert replica.state == "joining"
    assert look(replica, seen=seen(in_service=True)).state == "serving"
    assert told == []


def test_nothing_is_concluded_while_the_pool_cant_be_seen(
    first: Replica, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new, drain_seconds=5, at_deadline="cut")
    replica = look(first)
    for later in (1, 2, 3, 1000):
        replica = look(replica, seen=None, running=0, later=later)
    assert (replica.state, replica.idle_looks) == ("draining", 0)


def test_at_the_deadline_requests_are_cut_if_the_plan_says_so(
    first: Replica, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new, drain_seconds=5, at_deadline="cut")
    replica = look(first)
    cut: list[int] = []
    sight = {"seen": seen(sessions=2), "running": 2, "cut": lambda r: cut.append(r.pk)}
    assert look(replica, later=4, **sight).state == "draining"
    assert look(replica, later=6, **sight).state == "stopping"
    assert cut == [replica.pk]
    assert FleetEvent.objects.get(what="cut").detail == "2"


@pytest.mark.parametrize(
    ("bad", "state", "told_of"), [("watch_hang", "stopping", ["2"]), ("watch_slow", "draining", [])]
)
def test_an_engine_found_hanging_is_not_waited_for(
    bad: str, state: str, told_of: list[str], first: Replica, new: CatalogModel, told: Told
) -> None:
    """Its requests never end; a slow one's do."""
    Replica.objects.filter(pk=first.pk).update(watch={"bad": bad})
    set_goal(first, new)
    replica = look(first)
    assert replica.state == "draining"
    assert look(replica, seen=seen(sessions=2), running=2).state == state
    assert list(FleetEvent.objects.filter(what="cut").values_list("detail", flat=True)) == told_of


def test_at_the_deadline_the_old_model_stays_if_the_plan_says_so(
    first: Replica, old: CatalogModel, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new, drain_seconds=5, at_deadline="abort")
    replica = look(first)
    replica = look(replica, later=6, seen=seen(sessions=1), running=1)
    assert (replica.state, replica.error_code) == ("joining", "drain_deadline")
    replica = look(replica, seen=seen(in_service=True))
    assert (replica.state, replica.model, replica.wanted) == ("serving", old, old)
    assert told == []


def test_an_engine_that_ends_while_loading_says_why_and_is_not_started_again(
    first: Replica, machine_room: Server, new: CatalogModel, told: Told
) -> None:
    """S10."""
    set_goal(first, new)
    replica = to_starting(first, machine_room)
    Replica.objects.filter(pk=replica.pk).update(swap=_swap(replica, new))
    say(machine_room)
    replica = look(replica)
    say(machine_room, engines={replica.instance: exited("kv_cache_too_small", "To serve at least")})
    replica = look(replica)
    assert (replica.state, replica.error_code) == ("stopping", "kv_cache_too_small")
    assert replica.error_detail == "To serve at least"
    for later in (0, 60, 3600, 86400):
        replica = look(replica, later=later)
    assert (replica.state, told.names().count("gpu_start")) == ("failed", 1)


def _swap(replica: Replica, new: CatalogModel) -> object:
    from inference.models import Swap

    return Swap.objects.create(slot=replica.slot, from_model=replica.slot.model, to_model=new)


def test_it_waits_for_memory_and_not_for_the_port(
    first: Replica, machine_room: Server, new: CatalogModel, told: Told, settings: object
) -> None:
    """S8."""
    set_goal(first, new)
    replica = to_starting(first, machine_room)
    say(machine_room, gpus=[rooms.gpu(0, used=23_000), rooms.gpu(1)])
    replica = look(replica)
    assert (replica.state, told.names()) == ("starting", [])
    say(machine_room, gpus=[rooms.gpu(0, used=200), rooms.gpu(1)])
    replica = look(replica, later=4)
    assert told.names()[-1] == "gpu_start"


def test_memory_that_is_never_given_back_ends_it(
    first: Replica, machine_room: Server, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new)
    replica = to_starting(first, machine_room)
    held = [rooms.gpu(0, used=23_000), rooms.gpu(1)]
    say(machine_room, gpus=held, at=replica.state_since + _seconds(121))
    replica = look(replica, later=121)
    assert (replica.state, replica.error_code) == ("stopping", "memory_held")
    assert "gpu_start" not in told.names()


def _seconds(count: float) -> object:
    from datetime import timedelta

    return timedelta(seconds=count)


def test_loading_may_take_as_long_as_its_model_allows(
    first: Replica, machine_room: Server, told: Told
) -> None:
    """S15: twelve minutes within fifteen are patience, one second beyond is a failure."""
    slow = rooms.catalog_model("slow-model", load_seconds=900)
    set_goal(first, slow)
    replica = to_starting(first, machine_room)
    engines = {replica.instance: running(progress=50)}
    say(machine_room, engines=engines, at=replica.state_since + _seconds(720))
    assert look(replica, later=720, healthy=False).state == "starting"
    say(machine_room, engines=engines, at=replica.state_since + _seconds(901))
    replica = look(replica, later=901, healthy=False)
    assert (replica.state, replica.error_code) == ("stopping", "load_too_long")


def test_a_silent_server_makes_nothing_late(
    first: Replica, machine_room: Server, new: CatalogModel, told: Told
) -> None:
    """An hour without a word: it waits, and goes on."""
    set_goal(first, new)
    replica = to_starting(first, machine_room)
    say(machine_room, engines={replica.instance: running()})
    replica = look(replica, later=3600, healthy=False)
    assert (replica.state, replica.error_code) == ("starting", "")
    assert look(replica, later=3601, healthy=True).state == "checking"


def test_a_failed_check_is_the_reason(
    first: Replica, machine_room: Server, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new)
    replica = to_starting(first, machine_room)
    say(machine_room, engines={replica.instance: running()})
    replica = look(replica, healthy=True)
    bad = {**SERVED[0], "ok": False, "code": "smoke_think_in_content", "detail": "stream"}
    pending = {**SERVED[0], "ok": None}
    Replica.objects.filter(pk=replica.pk).update(checks=[SERVED[0], bad, pending])
    replica = look(replica)
    assert (replica.state, replica.error_code) == ("stopping", "smoke_think_in_content")


def test_an_engine_that_dies_in_service_is_started_again_with_growing_pauses(
    first: Replica, machine_room: Server, told: Told
) -> None:
    replica = first
    for attempt, pause in enumerate(RETRIES):
        say(machine_room, engines={replica.instance: exited("killed", "")})
        replica = look(replica)
        assert (replica.state, replica.error_code) == ("stopping", "killed")
        replica = look(replica)
        assert replica.state == "failed"
        assert replica.retry_at is not None
        if pause:
            assert look(replica, later=pause - 2).state == "failed"
        replica = look(replica, later=pause + 1)
        assert (replica.state, replica.attempts) == ("starting", attempt + 1)
        say(machine_room, engines={replica.instance: exited("killed", "")})
        if attempt + 1 < len(RETRIES):
            Replica.objects.filter(pk=replica.pk).update(state="serving")
    replica = look(look(replica))
    assert (replica.state, replica.retry_at) == ("failed", None)


def test_an_engine_that_ended_with_everything_just_starts_again(
    first: Replica, machine_room: Server, told: Told
) -> None:
    say(machine_room, engines={first.instance: exited("run_ended")})
    states = []
    for _ in range(2):
        first = look(first)
        states.append(first.state)
    assert states == ["stopping", "starting"]
    assert (first.attempts, first.error_code, first.begins(timezone.now())) == (0, "", True)
    assert not FleetEvent.objects.filter(what="failed").exists()


def test_an_engine_that_its_server_no_longer_knows_is_lost(
    first: Replica, machine_room: Server, told: Told
) -> None:
    say(machine_room, at=first.state_since + _seconds(15))
    assert look(first).state == "serving"
    say(machine_room, at=first.state_since + _seconds(21))
    replica = look(first)
    assert (replica.state, replica.error_code) == ("stopping", "engine_lost")


def test_taken_out_it_ends_off_and_stays_so(
    first: Replica, machine_room: Server, told: Told
) -> None:
    set_goal(first, None)
    replica = to_stopping(first)
    say(machine_room, engines={replica.instance: exited()})
    replica = look(replica)
    assert (replica.state, replica.model, replica.instance) == ("off", None, "")
    assert look(replica, later=1000).state == "off"


def test_a_step_that_was_overtaken_changes_nothing(first: Replica, new: CatalogModel) -> None:
    stale = Replica.objects.whole().get(pk=first.pk)
    set_goal(first, new)
    look(first)
    stale.goal_model = new
    with pytest.raises(ReplicaChanged):
        advance(stale, Sight(now=stale.state_since))
    assert FleetEvent.objects.filter(replica=first).count() == 1
