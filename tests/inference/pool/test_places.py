"""Into service, out of it, elsewhere: what HAProxy does while the rows change."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from inference.places import MISSING
from inference.pool import InvalidValue
from tests.inference.pool.proxy import Caller, Engine, Proxy, Traffic, at, wait_for

KEY = ("slot01", 1)


def test_a_place_is_proven_before_it_serves(proxy: Proxy, engine: Engine) -> None:
    engine.server.health_status = 503
    with Traffic(proxy.port) as traffic:
        first = proxy.reconcile(at(engine, "ready")).places[KEY]
        assert (first.changed, first.in_service, first.proven) == (
            ("address", "drain"),
            False,
            False,
        )
        assert first.status == "DRAIN 1/3"
        for _ in range(60):
            seen = proxy.reconcile(at(engine, "ready")).places[KEY]
            assert (seen.in_service, seen.proven) == (False, False)
            time.sleep(0.1)
        assert seen.status == "DOWN"
        assert engine.seen == 0
        engine.server.health_status = 200
        proxy.until_ready(at(engine, "ready"))
        wait_for(lambda: 200 in traffic.statuses)
    assert set(traffic.statuses) == {200, 503}


def test_a_pass_over_what_is_right_changes_nothing(proxy: Proxy, engine: Engine) -> None:
    proxy.until_ready(at(engine, "ready"))
    state = proxy.run_dir / "server-state"
    written = state.stat().st_mtime_ns
    view = proxy.reconcile(at(engine, "ready"))
    seen = view.places[KEY]
    assert (seen.in_service, seen.proven, seen.status, seen.changed) == (True, True, "UP", ())
    assert (view.restarted, view.saved, state.stat().st_mtime_ns) == (False, True, written)


def test_a_proven_place_waits_in_drain_if_that_is_wanted(proxy: Proxy, engine: Engine) -> None:
    wait_for(lambda: proxy.reconcile(at(engine, "drain")).places[KEY].proven, 15)
    assert proxy.reconcile(at(engine, "drain")).places[KEY].status == "DRAIN"
    assert (proxy.chat().status, engine.seen) == (503, 0)
    assert proxy.reconcile(at(engine, "ready")).places[KEY].in_service


def test_what_nobody_wants_goes_out(proxy: Proxy, engine: Engine, other: Engine) -> None:
    both = (at(engine, "ready"), at(other, "ready", number=2))
    proxy.until_ready(*both)
    assert proxy.reconcile(both[0]).places["slot01", 2].changed == ("maint",)
    assert proxy.reconcile(at(engine, "out")).places[KEY].status == "MAINT"
    assert {s.admin for s in proxy.pool.look().servers.values()} == {"maint"}


def test_another_address_is_proven_anew(proxy: Proxy, engine: Engine, other: Engine) -> None:
    proxy.until_ready(at(engine, "ready"))
    other.server.health_status = 503
    seen = proxy.reconcile(at(other, "ready")).places[KEY]
    assert (seen.changed, seen.in_service) == (("maint", "address", "drain"), False)
    time.sleep(3)
    assert not proxy.reconcile(at(other, "ready")).places[KEY].in_service
    assert (proxy.chat().status, engine.seen, other.seen) == (503, 0, 0)
    other.server.health_status = 200
    proxy.until_ready(at(other, "ready"))
    assert (proxy.chat().status, engine.seen, other.seen) == (200, 0, 1)


def test_a_drain_lets_streams_end_and_takes_no_more(proxy: Proxy, engine: Engine) -> None:
    engine.chunks = 20
    proxy.until_ready(at(engine, "ready"))
    caller = Caller(proxy.port)
    wait_for(lambda: caller.begun, every=0.02)
    seen = proxy.reconcile(at(engine, "drain")).places[KEY]
    assert (seen.changed, seen.in_service, seen.sessions) == (("drain",), False, 1)
    assert proxy.chat().status == 503
    caller.done()
    assert (caller.status, caller.whole, b"[DONE]" in caller.body) == (200, True, True)
    assert (engine.seen, proxy.reconcile(at(engine, "drain")).places[KEY].sessions) == (1, 0)


def test_a_cut_ends_streams_at_once(proxy: Proxy, engine: Engine) -> None:
    engine.chunks = 100
    proxy.until_ready(at(engine, "ready"))
    caller = Caller(proxy.port)
    wait_for(lambda: caller.begun, every=0.02)
    assert proxy.pool.cut("slot01", 1) == 1
    caller.done()
    assert (caller.whole, caller.seconds < 3) == (False, True)
    assert proxy.pool.cut("slot01", 1) == 0


def test_a_limit_is_set_again_when_a_reload_forgot_it(proxy: Proxy, engine: Engine) -> None:
    place = at(engine, "ready", maxconn=7)
    proxy.until_ready(place)
    assert proxy.pool.look().servers[KEY].maxconn == 7
    proxy.reload()
    assert proxy.pool.look().servers[KEY].maxconn == 64
    assert proxy.reconcile(place).places[KEY].changed == ("maxconn",)
    assert proxy.pool.look().servers[KEY].maxconn == 7


def test_two_engines_at_one_place_are_refused(proxy: Proxy, engine: Engine, other: Engine) -> None:
    with pytest.raises(InvalidValue):
        proxy.reconcile(at(engine, "ready"), at(other, "ready"))


def test_a_place_that_the_file_lacks_is_said(proxy: Proxy, engine: Engine) -> None:
    text = (proxy.run_dir / "haproxy.cfg").read_text().replace("server-template r 1-32", "# r", 1)
    (proxy.run_dir / "haproxy.cfg").write_text(text)
    proxy.reload()
    seen = proxy.reconcile(at(engine, "ready")).places[KEY]
    assert (seen.status, seen.in_service) == (MISSING, False)


def test_a_hundred_places_in_one_pass(proxy: Proxy, engine: Engine) -> None:
    places = [
        replace(at(engine, "ready", maxconn=32), backend=f"slot{slot:02}", number=number)
        for slot in range(1, 5)
        for number in range(1, 26)
    ]
    begun = time.monotonic()
    view = proxy.reconcile(*places)
    assert time.monotonic() - begun < 1
    assert {seen.changed for seen in view.places.values()} == {("address", "drain", "maxconn")}
    proxy.until_ready(*places)
