"""A slot without an engine: requests wait, are taken, or are told when to come back."""

from __future__ import annotations

import re
import socket
import time
from dataclasses import replace
from pathlib import Path

from tests.fakes.raw_http import post, request_bytes
from tests.inference.pool.proxy import CHAT, Caller, Engine, Proxy, at, running, wait_for


def test_a_waiting_request_is_taken_when_an_engine_is_ready(tmp_path: Path) -> None:
    with Engine() as engine, running(tmp_path, queue_seconds=20) as proxy:
        callers = [Caller(proxy.port) for _ in range(5)]
        wait_for(lambda: proxy.reconcile().queued["slot01"] == 5)
        assert engine.seen == 0
        proxy.until_ready(at(engine, "ready"))
        assert [caller.done().status for caller in callers] == [200] * 5
        assert engine.seen == 5
        assert proxy.reconcile(at(engine, "ready")).queued["slot01"] == 0


def test_who_waits_in_vain_is_told_when_to_come_back(proxy: Proxy) -> None:
    begun = time.monotonic()
    answer = proxy.chat()
    assert 0.9 < time.monotonic() - begun < 2
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert answer.json["error"]["code"] == "model_unavailable"


def test_a_rotation_is_named_with_its_beginning(proxy: Proxy, engine: Engine) -> None:
    assert proxy.pool.set_rotation({"slot01": "since 14:05 UTC"})
    assert not proxy.pool.set_rotation({"slot01": "since 14:05 UTC"})
    for restart in (lambda: None, proxy.restart):
        restart()
        answer = proxy.chat()
        assert (answer.status, answer.headers["retry-after"]) == (503, "30")
        assert answer.json["error"] == {
            "code": "model_rotating",
            "message": "A model rotation is under way since 14:05 UTC: the new model is still "
            "loading. This is not your limit and nothing was run. Try again in 30 seconds.",
            "param": None,
            "type": "server_error",
        }
    assert proxy.pool.set_rotation({})
    assert proxy.chat().json["error"]["code"] == "model_unavailable"


def test_nobody_waits_for_an_engine_that_is_not_coming(tmp_path: Path) -> None:
    """Also who waited already; until one is coming again."""
    with Engine() as engine, running(tmp_path, queue_seconds=20) as proxy:
        caller = Caller(proxy.port)
        wait_for(lambda: proxy.reconcile().queued["slot01"] == 1)
        assert proxy.pool.set_idle({"slot01": "out"})
        assert caller.done().status == 503
        for restart in (lambda: None, proxy.restart):
            restart()
            begun = time.monotonic()
            answer = proxy.chat()
            assert time.monotonic() - begun < 1
            assert (answer.status, answer.headers["retry-after"]) == (503, "300")
            assert answer.json["error"]["code"] == "model_taken_out"
            assert "The admins have taken this model out of service" in answer.body.decode()
        assert proxy.pool.set_idle({"slot01": "failed"})
        answer = proxy.chat()
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert answer.json["error"]["code"] == "model_unavailable"
        assert proxy.pool.set_idle({})
        waits = Caller(proxy.port)
        wait_for(lambda: proxy.reconcile().queued["slot01"] == 1)
        proxy.until_ready(at(engine, "ready"))
        assert waits.done().status == 200


def test_a_busy_engine_has_a_queue_too(tmp_path: Path) -> None:
    with Engine(chunks=30) as engine, running(tmp_path, queue_seconds=1) as proxy:
        proxy.until_ready(at(engine, "ready", maxconn=1))
        first = Caller(proxy.port)
        wait_for(lambda: first.begun, every=0.02)
        second = Caller(proxy.port)
        wait_for(lambda: proxy.reconcile(at(engine, "ready", maxconn=1)).queued["slot01"] == 1, 1)
        assert (second.done().status, first.done().status, engine.seen) == (503, 200, 1)


def test_who_left_while_waiting_costs_no_engine_anything(tmp_path: Path) -> None:
    with Engine() as engine, running(tmp_path, queue_seconds=20) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.sendall(request_bytes("POST", CHAT, body=b"{}"))
            wait_for(lambda: proxy.reconcile().queued["slot01"] == 1)
        stays = Caller(proxy.port)
        proxy.until_ready(at(engine, "ready"))
        assert stays.done().status == 200
        wait_for(lambda: proxy.reconcile(at(engine, "ready")).queued["slot01"] == 0, 5)
        assert engine.seen == 1


def test_a_wait_that_an_admin_ends_is_not_counted_on(tmp_path: Path) -> None:
    with running(tmp_path, queue_seconds=20) as proxy:
        caller = Caller(proxy.port)
        wait_for(lambda: proxy.reconcile().queued["slot01"] == 1)
        (session,) = re.findall(
            r"^(0x\w+): .* fe=pool", proxy.pool._ask("admin.sock", "show sess"), re.M
        )
        proxy.pool._ask("admin.sock", f"shutdown session {session}")
        caller.done()
        wait_for(lambda: proxy.reconcile().queued["slot01"] == 0, 5)


def test_a_waiting_request_survives_a_reload(tmp_path: Path) -> None:
    with Engine() as engine, running(tmp_path, queue_seconds=20) as proxy:
        callers = [Caller(proxy.port) for _ in range(3)]
        wait_for(lambda: proxy.reconcile().queued["slot01"] == 3)
        proxy.reload()
        wait_for(lambda: proxy.reconcile().queued["slot01"] == 3)
        proxy.until_ready(at(engine, "ready"))
        assert [caller.done().status for caller in callers] == [200] * 3
        assert engine.seen == 3


def test_other_slots_do_not_wait(tmp_path: Path) -> None:
    with Engine() as engine, running(tmp_path, queue_seconds=20) as proxy:
        proxy.pool.set_names({"chat": "slot01", "small": "slot02"})
        waits = Caller(proxy.port)
        place = replace(at(engine, "ready"), backend="slot02")
        proxy.until_ready(place)
        assert post(proxy.port, "/small/v1/embeddings").status == 200
        assert proxy.reconcile(place).queued["slot01"] == 1
        assert waits.is_alive()
