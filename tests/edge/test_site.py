"""The browser's front: whose address the web application sees, and what it never sees."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest

from nan.local.config import WEB_THREADS
from tests.edge.conftest import Scene
from tests.edge.running import running_edge
from tests.fakes.raw_http import Connection, RawServer, Request, exchange, get, post, request_bytes

SPOOFED = {
    "X-Forwarded-For": "6.6.6.6",
    "x-forwarded-proto": "https",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Port": "1",
    "X-Forwarded-Server": "evil.example",
    "Forwarded": "for=6.6.6.6;host=evil.example",
    "X-Real-IP": "6.6.6.6",
    "X-Client-IP": "6.6.6.6",
    "X-Cluster-Client-IP": "6.6.6.6",
    "True-Client-IP": "6.6.6.6",
    "CF-Connecting-IP": "6.6.6.6",
    "Proxy": "http://evil.example",
}


def test_a2_a_forged_address_never_reaches_the_web(scene: Scene) -> None:
    assert get(scene.edge.site, "/accounts/login/", headers=SPOOFED).status == 200
    (seen,) = scene.web.requests
    assert sorted((name.lower(), value) for name, value in seen.headers) == [
        ("connection", "close"),
        ("host", "127.0.0.1"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
    ]


def test_pages_that_need_no_database_never_wait_behind_those_that_do(scene: Scene) -> None:
    """While the database does not answer, everybody's other pages hang (S16)."""
    go_on = threading.Event()

    def hang(request: Request, connection: Connection) -> None:
        if not request.target.startswith(("/status", "/static/")):
            go_on.wait(20)
        connection.answer(200, b"ok")

    scene.scripts["web"] = hang
    waiting = [threading.Thread(target=get, args=(scene.edge.site, "/key/")) for _ in range(40)]
    for thread in waiting:
        thread.start()
    try:
        time.sleep(0.5)
        held = [one for one in scene.web.requests if one.target == "/key/"]
        assert len(held) < WEB_THREADS  # each process has a thread left, whichever took them
        for path in ("/status/", "/status.json", "/status.atom", "/static/css/base.css"):
            began = time.monotonic()
            assert get(scene.edge.site, path).status == 200
            assert time.monotonic() - began < 1
    finally:
        go_on.set()
        for thread in waiting:
            thread.join()


def test_a2_repeated_forged_headers_do_not_pass_either(scene: Scene) -> None:
    raw = b"GET / HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.1.1.1\r\n"
    raw += b"x-forwarded-for: 2.2.2.2\r\nX-FORWARDED-FOR: 3.3.3.3, 4.4.4.4\r\n\r\n"
    assert exchange(scene.edge.site, raw).status == 200
    (seen,) = scene.web.requests
    assert seen.values("x-forwarded-for") == ["127.0.0.1"]
    assert seen.values("x-forwarded-host") == ["a.example"]


@pytest.mark.parametrize(
    "target",
    [
        "/metrics",
        "/metrics/",
        "/metrics?x=1",
        "/metrics/x",
        "/readyz",
        "//metrics",
        "/%6detrics",
        "/%6Detric%73",
        "/%2Fmetrics",
        "/METRICS",
        "/readyz;x",
        "/metrics%3Fx",
        "http://127.0.0.1/metrics",
    ],
)
def test_internal_pages_stay_inside(scene: Scene, target: str) -> None:
    answer = get(scene.edge.site, target)
    assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page" in answer.body.decode()
    assert scene.web.requests == []


@pytest.mark.parametrize(
    "name",
    [
        "SCRIPT_NAME",
        "script_name",
        "Script-Name",
        "SCRIPT-NAME",
        "PATH_INFO",
        "Path-Info",
        "X_Forwarded_For",
        "X-Forwarded_For",
        "_",
        "REMOTE_USER",
    ],
)
def test_a_header_cant_stand_for_the_webs_own_variables(scene: Scene, name: str) -> None:
    assert get(scene.edge.site, "/x/metrics", headers={name: "/x"}).status == 200
    (seen,) = scene.web.requests
    assert sorted(found.lower() for found, _ in seen.headers) == [
        "connection",
        "host",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
    ]


@pytest.mark.parametrize("target", ["/", "/healthz", "/metricsx", "/docs/metrics", "/a?b=/metrics"])
def test_other_pages_reach_the_web(scene: Scene, target: str) -> None:
    assert get(scene.edge.site, target).status == 200
    assert [request.target for request in scene.web.requests] == [target]


def test_forms_up_to_1_mib(scene: Scene) -> None:
    assert post(scene.edge.site, "/waitlist/", b"x" * 2**20).status == 200
    assert [len(request.body) for request in scene.web.requests] == [2**20]
    raw = b"POST /waitlist/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n" + b"x" * 16384
    answer = exchange(scene.edge.site, raw)
    assert (answer.status, "1 MiB" in answer.body.decode()) == (413, True)
    assert len(scene.web.requests) == 1


def test_a_chunked_form_is_refused(scene: Scene) -> None:
    raw = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    assert exchange(scene.edge.site, raw).status == 400
    assert scene.web.requests == []


def test_the_webs_own_answers_pass(scene: Scene) -> None:
    scene.scripts["web"] = lambda request, connection: connection.answer(
        503, b"own page", {"server": "gunicorn", "retry-after": "3", "x-litellm-x": "1"}
    )
    answer = get(scene.edge.site, "/")
    assert (answer.status, answer.body) == (503, b"own page")
    assert answer.headers == {"content-length": "8", "retry-after": "3", "x-litellm-x": "1"}


def assert_friendly(page: str) -> None:
    assert ("NaN está en una breve pausa" in page, "NaN is taking a short break" in page) == (
        True,
        True,
    )
    assert page.count("<h1") == 1
    assert re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", page) == ["/"]
    assert re.findall(r"<script|@import|url\(", page) == []


def test_without_the_web_a_friendly_page_in_both_languages(tmp_path: Path) -> None:
    with running_edge(tmp_path) as edge:
        answer = get(edge.site, "/key/")
    assert (answer.status, answer.headers["retry-after"]) == (503, "10")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert_friendly(answer.body.decode())


def test_a_flood_waits_at_the_edge(tmp_path: Path) -> None:
    """At most 64 requests are at the web application at a time; the others wait and are served."""
    running, highest, lock = 0, 0, threading.Lock()

    def slow(request: Request, connection: Connection) -> None:
        nonlocal running, highest
        with lock:
            running += 1
            highest = max(highest, running)
        time.sleep(0.3)
        with lock:
            running -= 1
        connection.answer(200)

    statuses: list[int] = []
    with RawServer(slow) as web, running_edge(tmp_path, web=web.address) as edge:
        raw = request_bytes("GET", "/")
        threads = [
            threading.Thread(target=lambda: statuses.append(exchange(edge.site, raw).status))
            for _ in range(100)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (statuses, highest) == ([200] * 100, 7)
