"""An engine that dies in service."""

from __future__ import annotations

import time
from pathlib import Path

from tests.inference.pool.proxy import Caller, Engine, Proxy, Traffic, at, running, wait_for

KEY = ("slot01", 1)


def test_out_after_six_seconds_and_nothing_lost(tmp_path: Path) -> None:
    """A call that the dead engine's socket had taken, unread, may have begun: it is not in here."""
    with Engine() as dies, Engine() as stays, running(tmp_path) as proxy:
        wanted = (at(dies, "ready"), at(stays, "ready", number=2))
        proxy.until_ready(*wanted)
        with Traffic(proxy.port) as traffic:
            time.sleep(0.5)
            with traffic.between_calls():
                dies.server.refuse()
            out = wait_for(lambda: not proxy.reconcile(*wanted).places[KEY].in_service)
        assert out < 6.5
        assert set(traffic.statuses) == {200}
        assert len(traffic.statuses) == dies.seen + stays.seen


def test_a_begun_stream_breaks_off_for_the_client_and_ran_once(
    proxy: Proxy, engine: Engine, other: Engine
) -> None:
    engine.chunks, engine.die_after = 10, 3
    other.chunks, other.die_after = 10, 3
    proxy.until_ready(at(engine, "ready"), at(other, "ready", number=2))
    caller = Caller(proxy.port).done()
    assert (caller.status, caller.whole, b"data: 2" in caller.body) == (200, False, True)
    assert b"[DONE]" not in caller.body
    assert engine.seen + other.seen == 1
