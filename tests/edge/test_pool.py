"""From the gateway to the engines: names, places, health, and nothing replayed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from inference.pool import PLACES, SLOTS
from tests.edge.conftest import Scene, answer_ok
from tests.edge.running import RunningEdge, running_edge
from tests.fakes.raw_http import Connection, RawServer, Request, get, post
from tests.ports import free_port
from tests.waiting import wait_until

SOCKETS = ("admin.sock", "master.sock")


def test_the_slots_name_is_cut_off(scene: Scene) -> None:
    answer = post(scene.edge.pool, "/chat/v1/chat/completions", b'{"model":"nan"}')
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert [(r.target, r.body) for r in scene.engine.requests] == [
        ("/v1/chat/completions", b'{"model":"nan"}')
    ]
    assert get(scene.edge.pool, "/chat/v1/models").status == 200


def test_the_gateway_comes_with_a_new_connection_each_time(scene: Scene) -> None:
    """One that it kept would belong to the HAProxy from before a reload."""
    answer = post(scene.edge.pool, "/chat/v1/chat/completions", b"{}")
    assert (answer.status, answer.headers["connection"]) == (200, "close")


@pytest.mark.parametrize(
    "target", ["/", "/v1/models", "/other/v1/models", "/chat/metrics", "/chat"]
)
def test_other_paths_reach_no_engine(scene: Scene, target: str) -> None:
    answer = get(scene.edge.pool, target)
    assert (answer.status, answer.json["error"]["code"]) == (404, "unknown_url")
    assert scene.engine.requests == []


def test_an_engines_error_passes_to_the_gateway(scene: Scene) -> None:
    scene.scripts["engine"] = lambda request, connection: connection.answer(418, b"own words")
    answer = post(scene.edge.pool, "/chat/v1/chat/completions")
    assert (answer.status, answer.body) == (418, b"own words")


def test_without_an_engine_503_and_when_to_try_again(tmp_path: Path) -> None:
    with running_edge(tmp_path, queue_seconds=1) as edge:
        edge.runtime.set_names({"chat": "slot01"})
        answer = post(edge.pool, "/chat/v1/chat/completions")
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert answer.json["error"]["code"] == "model_unavailable"


def test_s13_a_request_that_has_begun_is_never_replayed(scene: Scene) -> None:
    def break_off(request: Request, connection: Connection) -> None:
        connection.socket.shutdown(2)

    scene.scripts["engine"] = break_off
    answer = post(scene.edge.pool, "/chat/v1/chat/completions")
    assert (answer.status, answer.json["error"]["code"]) == (502, "bad_gateway")
    assert len(scene.engine.requests) == 1


def test_s13_a_dead_engine_is_passed_over(tmp_path: Path) -> None:
    with RawServer(answer_ok) as engine, running_edge(tmp_path) as edge:
        edge.serve(free_port(), number=1)
        edge.serve(engine, number=2)
        statuses = [post(edge.pool, "/chat/v1/chat/completions").status for _ in range(6)]
        assert (statuses, len(engine.requests)) == ([200] * 6, 6)


def test_every_slot_has_places_that_are_out_until_told_otherwise(tmp_path: Path) -> None:
    with running_edge(tmp_path) as edge:
        servers = edge.runtime.look().servers
    assert list(servers) == [(slot, number) for slot in SLOTS for number in range(1, PLACES + 1)]
    assert {(server.admin, server.status) for server in servers.values()} == {("maint", "MAINT")}


def test_the_sockets_are_ours_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with running_edge(tmp_path):
        modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in SOCKETS}
        assert modes == dict.fromkeys(SOCKETS, 0o600)
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_an_engine_whose_health_fails_gets_no_requests(tmp_path: Path) -> None:
    with (
        RawServer(answer_ok, health_status=500) as engine,
        running_edge(tmp_path, queue_seconds=1) as edge,
    ):
        edge.serve(engine)
        wait_until_down(edge, "slot01")
        assert post(edge.pool, "/chat/v1/chat/completions").status == 503
        assert engine.requests == []


def test_a_gateway_whose_health_fails_gets_no_requests(tmp_path: Path) -> None:
    with (
        RawServer(answer_ok, health_status=500) as gateway,
        running_edge(tmp_path, gateway=gateway.address) as edge,
    ):
        wait_until_down(edge, "gateway")
        assert post(edge.api, "/v1/chat/completions").status == 503
        assert gateway.requests == []


def wait_until_down(edge: RunningEdge, backend: str) -> None:
    sign = f'haproxy_backend_status{{proxy="{backend}",state="DOWN"}} 1'.encode()
    wait_until(lambda: sign in get(edge.ops, "/metrics").body, seconds=10)


def test_the_log_names_the_slots_path(tmp_path: Path) -> None:
    with RawServer(answer_ok) as engine, running_edge(tmp_path) as edge:
        edge.serve(engine)
        post(edge.pool, "/chat/v1/embeddings?secret=1")
        lines = edge.log()
    assert [(line["fe"], line["be"], line["srv"], line["m"], line["p"]) for line in lines] == [
        ("pool", "slot01", "r1", "POST", "/chat/v1/embeddings")
    ]
