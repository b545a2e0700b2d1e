"""A GPU or a whole server is needed for something else for a day: out of service and back from the
pages, while members call all the time."""

import time
from typing import Any

import pytest

from inference.pool import Pool
from tests.fleet import Fleet
from tests.gpu_server import GPUS, NAME, empty_server
from tests.load import Load, LongStream
from tests.pages.markup import words
from tests.pool_log import asked
from tests.ports import free_port
from tests.visitor import Visitor
from tests.waiting import wait_until

LONG = 12  # seconds that a stream runs on after its place was taken out
PATIENT = {"drain_minutes": 5, "at_deadline": "abort"}


def pressed(staff: Visitor, path: str, data: dict[str, object] | None = None) -> str:
    """What the page says after it."""
    answer = staff.post(path, data)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"
    return words(answer.text)


def steady(fleet: Fleet, key: str) -> Load:
    """Streams that take a while, so that some run wherever something is taken out."""
    return Load(fleet.stack.api, key, tokens=200, sleep=3, pause=0.2)


def capacity(fleet: Fleet) -> int:
    """Seats, as decisions about the waitlist count them."""
    return int(fleet.do("from members import seats\nresult = seats.count().total"))


def used(fleet: Fleet, server: str, gpu: int) -> int:
    """MiB, by the server's last report."""
    row = f"Server.objects.get(name={server!r}).gpus"
    return int(fleet.ask(f"next(g['used_mib'] for g in {row} if g['index'] == {gpu})"))


def at_the_proxy(fleet: Fleet, number: int) -> str:
    return Pool(fleet.pool_dir).look().servers["slot01", number].status


def until_asked(fleet: Fleet, numbers: set[int], *, since: float) -> None:
    """Members' requests reach one of these places again."""

    def met() -> bool:
        return bool(numbers & {one.number for one in asked(fleet.stack, since=since)})

    wait_until(met, seconds=30, what=f"requests at {numbers}")


def must_be_out(fleet: Fleet, staff: Visitor, replica: dict[str, Any]) -> None:
    """Off, its GPU free for something else, and unknown to the pool."""
    fleet.until_replica(replica["number"], "off")
    assert at_the_proxy(fleet, replica["number"]) == "MAINT"
    (gpu,) = replica["gpus"]
    wait_until(
        lambda: used(fleet, replica["server"], gpu) == 0, seconds=20, what="the memory to be free"
    )
    assert "Put in service" in staff.get(f"/staff/replicas/{replica['id']}/")


def test_a_replica_is_out_for_a_day(fleet: Fleet, load_key: str, staff: Visitor) -> None:
    seats, replica = capacity(fleet), fleet.replicas()[1]
    here = int(fleet.ask("Server.objects.get(name='local').seats"))
    page = f"/staff/replicas/{replica['id']}/"
    assert used(fleet, "local", 1) > 0
    with (
        fleet.long_stream(2, load_key, seconds=LONG) as stream,
        steady(fleet, load_key) as load,
    ):
        assert "One other replica of the slot goes on serving." in words(staff.get(f"{page}out/"))
        said = pressed(staff, f"{page}out/", PATIENT)
        assert "It finishes what it has and stops." in said
        fleet.until_replica(2, "draining")
        assert stream.is_alive()
        assert stream.ended() == "whole"
        must_be_out(fleet, staff, replica)
        out = time.time()
        assert capacity(fleet) == seats - here // 2
        assert f"{here // 2} of {here}" in words(staff.get("/staff/servers/local/"))
        until_asked(fleet, {1}, since=out)
        said = pressed(staff, f"{page}in/")
        assert "It starts, is tested, and joins the pool when it has passed." in said
        back = time.time()
        fleet.until_replica(2, "serving")
        until_asked(fleet, {2}, since=back)
    assert load.bad == []
    assert [one.status for one in asked(fleet.stack, since=out) if one.status != 200] == []
    assert capacity(fleet) == seats
    assert used(fleet, "local", 1) > 0


@pytest.mark.timeout(400)
def test_a_server_comes_is_out_for_a_day_and_goes(
    fleet: Fleet, load_key: str, staff: Visitor
) -> None:
    """Its two GPUs add two replicas to the slot that another server serves; no swap is needed."""
    seats = capacity(fleet)
    with empty_server(fleet):
        with steady(fleet, load_key) as first:
            for gpu in range(GPUS):
                add(fleet, staff, gpu)
            fleet.settle()
            there = [replica for replica in fleet.replicas() if replica["server"] == NAME]
            until_asked(fleet, {replica["number"] for replica in there}, since=0)
        more = fleet.ask(f"Server.objects.get(name={NAME!r}).seats")
        assert (capacity(fleet), len(there)) == (seats + more, GPUS)
        with (
            fleet.long_stream(there[0]["number"], load_key, seconds=LONG) as stream,
            steady(fleet, load_key) as second,
        ):
            out_and_back(fleet, staff, there, stream, seats)
        assert capacity(fleet) == seats + more
    assert (first.bad, second.bad) == ([], [])
    assert (capacity(fleet), len(fleet.replicas())) == (seats, 2)
    assert {replica["state"] for replica in fleet.replicas()} == {"serving"}


def add(fleet: Fleet, staff: Visitor, gpu: int) -> None:
    slot = fleet.ask("Slot.objects.get(name='nan').pk")
    place = {"slot": slot, "gpus": [gpu], "port": free_port()}
    said = pressed(staff, f"/staff/servers/{NAME}/replicas/", place)
    assert "Added. Nothing runs there until you put it in service" in said
    newest = fleet.replicas()[-1]["id"]
    assert "It starts, is tested" in pressed(staff, f"/staff/replicas/{newest}/in/")


def out_and_back(
    fleet: Fleet,
    staff: Visitor,
    there: list[dict[str, Any]],
    stream: LongStream,
    seats: int,
) -> None:
    """`seats`: those that are left meanwhile."""
    page = f"/staff/servers/{NAME}/"
    asks = words(staff.get(f"{page}out/"))
    assert f"Its {GPUS} replicas get no new requests, finish those they have, and stop." in asks
    assert "Going out of service" in pressed(staff, f"{page}out/", PATIENT)
    assert capacity(fleet) == seats
    fleet.until_replica(there[0]["number"], "draining")
    assert stream.is_alive()
    assert stream.ended() == "whole"
    for replica in there:
        must_be_out(fleet, staff, replica)
    out = time.time()
    until_asked(fleet, {1, 2}, since=out)
    assert "Back in service" in pressed(staff, f"{page}back/")
    fleet.settle()
    until_asked(fleet, {replica["number"] for replica in there}, since=out)
