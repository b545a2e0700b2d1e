"""HAProxy reloaded or killed while the rows change: nothing reaches an engine that is not ready."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.places import Place, reconcile
from inference.pool import Pool, PoolUnavailable
from tests.inference.pool.proxy import Caller, Engine, Proxy, Traffic, at, running, wait_for

KEY = ("slot01", 1)
STARTS = [Proxy.restart, Proxy.reload]
Start = Callable[[Proxy], None]


@pytest.mark.parametrize("start", STARTS)
def test_at_each_step_of_a_rotation(tmp_path: Path, start: Start) -> None:
    """A serves at 1 and 2 stays; 1 drains, goes out, gets B's address, is proven, serves."""
    with Engine() as a, Engine() as b, Engine() as stays, running(tmp_path) as proxy:
        always = at(stays, "ready", number=2)
        proxy.until_ready(at(a, "ready"), always)
        with Traffic(proxy.port) as traffic:
            wait_for(lambda: a.seen)
            for place, forbidden in (
                (at(a, "drain"), [a, b]),
                (at(a, "out"), [a, b]),
                (at(b, "out"), [a, b]),
                (at(b, "drain"), [a, b]),
            ):
                proxy.reconcile(place, always)
                _nothing_reaches(proxy, forbidden, start, place, always)
            proxy.until_ready(at(b, "ready"), always)
            start(proxy)
            wait_for(lambda: b.seen, 5)
        if start is Proxy.reload:
            assert set(traffic.statuses) == {200}
        else:
            # Killed, it cuts what runs and refuses until it is back: 0.
            assert set(traffic.statuses) == {0, 200}


def _nothing_reaches(proxy: Proxy, forbidden: list[Engine], start: Start, *wanted: Place) -> None:
    time.sleep(0.3)  # what had been sent before the step is counted by now
    before = [engine.seen for engine in forbidden]
    start(proxy)
    time.sleep(1)
    view = proxy.reconcile(*wanted)
    assert (view.restarted, proxy.reconcile(*wanted).restarted) == (True, False)
    assert view.places["slot01", 2].in_service
    time.sleep(0.3)
    assert [engine.seen for engine in forbidden] == before


@pytest.mark.parametrize("start", STARTS)
def test_what_served_serves_again_without_a_pass(
    proxy: Proxy, engine: Engine, start: Start
) -> None:
    proxy.until_ready(at(engine, "ready"))
    start(proxy)
    assert (proxy.chat().status, engine.seen) == (200, 1)


@pytest.mark.parametrize("start", STARTS)
def test_a_crash_after_the_commands_brings_nothing_back(
    proxy: Proxy, engine: Engine, start: Start
) -> None:
    """The worker dies before it writes what it did: the file has said so already."""

    class Dies(Pool):
        def apply(self, commands: object) -> list[str]:
            super().apply(commands)
            raise KeyboardInterrupt

    proxy.until_ready(at(engine, "ready"))
    with pytest.raises(KeyboardInterrupt):
        reconcile(Dies(proxy.run_dir), [at(engine, "drain")])
    start(proxy)
    assert proxy.pool.look().servers[KEY].admin == "drain"
    assert (proxy.chat().status, engine.seen) == (503, 0)


@pytest.mark.parametrize("start", STARTS)
def test_an_old_state_file_is_mended_by_the_first_pass(
    proxy: Proxy, engine: Engine, other: Engine, start: Start
) -> None:
    """HAProxy applies any file without a word, so an old one put back does get requests through."""
    proxy.until_ready(at(engine, "ready"))
    old = (proxy.run_dir / "server-state").read_text()
    proxy.until_ready(at(other, "ready"))
    (proxy.run_dir / "server-state").write_text(old)
    start(proxy)
    seen = proxy.reconcile(at(other, "ready")).places[KEY]
    assert (seen.changed, seen.in_service) == (("maint", "address", "drain"), False)
    before = engine.seen
    proxy.until_ready(at(other, "ready"))
    assert (proxy.chat().status, engine.seen, other.seen) == (200, before, 1)


@pytest.mark.parametrize("start", STARTS)
def test_a_proof_does_not_outlive_the_process_that_made_it(
    proxy: Proxy, engine: Engine, start: Start
) -> None:
    wait_for(lambda: proxy.reconcile(at(engine, "drain")).places[KEY].proven)
    engine.server.refuse()
    with socket.create_server(("127.0.0.1", engine.server.port)):  # takes calls, never answers
        start(proxy)
        assert proxy.pool.look().servers[KEY].status == "DRAIN 1/3"
        for _ in range(80):
            seen = proxy.reconcile(at(engine, "ready")).places[KEY]
            assert (seen.in_service, seen.proven) == (False, False)
            time.sleep(0.1)


def test_a_place_that_was_down_is_proven_again(proxy: Proxy, engine: Engine) -> None:
    proxy.until_ready(at(engine, "ready"))
    engine.server.health_status = 503
    wait_for(lambda: proxy.reconcile(at(engine, "ready")).places[KEY].status == "DOWN")
    proxy.restart()
    assert proxy.pool.look().servers[KEY].admin == "drain"
    assert (proxy.chat().status, engine.seen) == (503, 0)
    engine.server.health_status = 200
    proxy.until_ready(at(engine, "ready"))
    assert proxy.chat().status == 200


def test_a_stream_from_before_a_reload_is_counted_and_can_be_cut(
    proxy: Proxy, engine: Engine
) -> None:
    engine.chunks = 100
    proxy.until_ready(at(engine, "ready"))
    callers = [Caller(proxy.port) for _ in range(2)]
    wait_for(lambda: all(caller.begun for caller in callers), every=0.02)
    proxy.reload()
    assert proxy.reconcile(at(engine, "drain")).places[KEY].sessions == 2
    assert proxy.pool.cut("slot01", 1) == 2
    assert [caller.done().whole for caller in callers] == [False, False]
    wait_for(lambda: proxy.reconcile(at(engine, "drain")).places[KEY].sessions == 0, 3)


def test_without_space_for_the_file_a_start_begins_with_nothing(
    proxy: Proxy, engine: Engine
) -> None:
    proxy.until_ready(at(engine, "ready"))
    (proxy.run_dir / "server-state.new").mkdir()  # in the way of the new file
    view = proxy.reconcile(at(engine, "drain"))
    assert (view.saved, (proxy.run_dir / "server-state").exists()) == (False, False)
    assert view.places[KEY].status == "DRAIN"
    proxy.restart()
    assert {server.admin for server in proxy.pool.look().servers.values()} == {"maint"}


def test_while_haproxy_is_down_a_pass_says_so(proxy: Proxy, engine: Engine) -> None:
    proxy.kill()
    with pytest.raises(PoolUnavailable):
        proxy.reconcile(at(engine, "ready"))
    proxy.start()
    proxy.until_ready(at(engine, "ready"))
