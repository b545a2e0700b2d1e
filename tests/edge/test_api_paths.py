"""Which requests reach the gateway, and as what."""

import http.client
import select
import socket

import pytest

from tests.edge.conftest import Scene
from tests.fakes.raw_http import (
    Connection,
    Request,
    exchange,
    get,
    post,
    read_answer,
    request_bytes,
)

POST_PATHS = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/audio/transcriptions",
    "/v1/audio/speech",
]


def unknown_url(scene: Scene) -> dict[str, object]:
    return {
        "error": {
            "message": "Unknown URL. The API answers under /v1/, for example POST "
            "/v1/chat/completions; how to call it stands at "
            f"http://127.0.0.1:{scene.edge.site}/key/.",
            "type": "invalid_request_error",
            "param": None,
            "code": "unknown_url",
        }
    }


@pytest.mark.parametrize("path", POST_PATHS)
def test_allowed_post_reaches_the_gateway(scene: Scene, path: str) -> None:
    answer = post(scene.edge.api, path, b'{"model":"nan"}')
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert [(r.method, r.target, r.body) for r in scene.gateway.requests] == [
        ("POST", path, b'{"model":"nan"}')
    ]


def test_models_with_its_query_reaches_the_gateway(scene: Scene) -> None:
    assert get(scene.edge.api, "/v1/models?client_version=0.171.0").status == 200
    assert [r.target for r in scene.gateway.requests] == ["/v1/models?client_version=0.171.0"]


@pytest.mark.parametrize(
    ("target", "arrives"),
    [
        ("/v1/chat/completions?api_base=http://127.0.0.1:1", "/v1/chat/completions"),
        ("/v1/chat/completions?beta=true", "/v1/chat/completions"),
        ("/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/v1/messages/count_tokens?beta=true", "/v1/messages/count_tokens?beta=true"),
        ("/v1/messages?beta=true&user=a", "/v1/messages"),
        ("/v1/messages?", "/v1/messages"),
    ],
)
def test_a_query_is_dropped_but_for_beta(scene: Scene, target: str, arrives: str) -> None:
    assert post(scene.edge.api, target).status == 200
    assert [request.target for request in scene.gateway.requests] == [arrives]


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/v1",
        "/v1/",
        "/ui/",
        "/routes",
        "/openapi.json",
        "/key/generate",
        "/model/info",
        "/metrics",
        "/health/liveliness",
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v1/chat/completions/",
        "/v1/../v1/chat/completions",
        "/v1/chat/../../key/generate",
        "/v1/./chat/completions",
        "/%761/chat/completions",
        "/v1/chat%2fcompletions",
        "/v1/%2e%2e/key/generate",
        "/v1/chat/completions%00",
        "/v1/chat/completions;x=1",
        "/V1/chat/completions",
        "/v1/chat/completions%20",
        "/v1\\chat\\completions",
        "/chat/completions",
        "/v1/models/nan",
        "http://127.0.0.1/v1/chat/completions",
        "http://127.0.0.1/key/generate",
        "http://evil.example/v1/chat/completions",
        "*",
        "/v1/chat/completions#a",
        "/v1/chat/complétions",
    ],
)
def test_every_other_path_is_a_404_in_json(scene: Scene, target: str) -> None:
    answer = post(scene.edge.api, target)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/json")
    assert answer.json == unknown_url(scene)
    assert scene.gateway.requests == []


@pytest.mark.parametrize("host", ["evil.example", "gateway.internal", "127.0.0.2", ""])
def test_another_host_is_a_404(scene: Scene, host: str) -> None:
    answer = post(scene.edge.api, "/v1/chat/completions", host=host)
    assert (answer.status, answer.json) == (404, unknown_url(scene))
    assert scene.gateway.requests == []


def test_a_404_below_messages_has_anthropics_shape(scene: Scene) -> None:
    answer = post(scene.edge.api, "/v1/messages/batches")
    message = unknown_url(scene)["error"]["message"]
    assert (answer.status, answer.json) == (
        404,
        {"type": "error", "error": {"type": "not_found_error", "message": message}},
    )


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("GET", "/v1/responses", "POST"),
        ("POST", "/v1/models", "GET"),
        ("DELETE", "/v1/models", "GET"),
        ("OPTIONS", "/v1/chat/completions", "POST"),
        ("TRACE", "/v1/chat/completions", "POST"),
    ],
)
def test_other_methods_are_a_405(scene: Scene, method: str, path: str, allow: str) -> None:
    answer = exchange(scene.edge.api, request_bytes(method, path, body=b"{}"))
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert answer.json["error"]["code"] == "method_not_allowed"
    assert scene.gateway.requests == []


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_websocket_is_refused(scene: Scene, method: str) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    raw = request_bytes(method, "/v1/responses", body=b"", headers=upgrade)
    answer = exchange(scene.edge.api, raw)
    assert (answer.status, answer.json["error"]["code"]) == (400, "upgrade_refused")
    assert scene.gateway.requests == []


def test_other_upgrades_are_ignored(scene: Scene) -> None:
    headers = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAM"}
    assert post(scene.edge.api, "/v1/chat/completions", headers=headers).status == 200
    (seen,) = scene.gateway.requests
    assert (seen.values("upgrade"), seen.values("http2-settings")) == ([], [])


def test_clear_text_http2_does_not_get_in(scene: Scene) -> None:
    with socket.create_connection(("127.0.0.1", scene.edge.api), 5) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        assert read_answer(connection).status in (400, 404)
    assert scene.gateway.requests == []


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /v1/models HTTP/4.2\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /v1/models?a=\xe9 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /v1/models?a#b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX\xe9: 1\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX : 1\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /v1/models HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_broken_http_is_a_400_in_json(scene: Scene, raw: bytes) -> None:
    answer = exchange(scene.edge.api, raw)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
    assert answer.json == {
        "error": {
            "message": "This request is not valid HTTP for this path.",
            "type": "invalid_request_error",
            "param": None,
            "code": "bad_request",
        }
    }
    assert scene.gateway.requests == []


HOST = b"Host: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /v1/models HTTP/1.1\r\n" + HOST + b"Host: b\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"GET /v1/models HTTP/1.1\r\n" + HOST + b"X: a\rb\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 40_000 + b"\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n",
    ],
    ids=["hosts", "lengths", "bare CR", "long", "encoding"],
)
def test_what_cant_be_parsed_is_a_400(scene: Scene, raw: bytes) -> None:
    """Its body is HAProxy's own HTML or our JSON, depending on HAProxy's version."""
    assert exchange(scene.edge.api, raw).status == 400
    assert scene.gateway.requests == []


@pytest.mark.parametrize("status", [400, 408])
def test_the_answer_to_it_reads_in_both_dialects(scene: Scene, status: int) -> None:
    raw = (scene.edge.run_dir / "errors" / f"api-{status}.http").read_bytes()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(raw)
        theirs.shutdown(socket.SHUT_WR)
        answer = read_answer(ours)
    error = answer.json["error"]
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert (answer.json["type"], error["type"]) == ("error", "invalid_request_error")
    assert set(error) == {"message", "type", "param", "code"}


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n" + CHUNKED,
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n" + CHUNKED,
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["chunked", "both", "neither"],
)
def test_a_body_without_its_length_is_a_411(scene: Scene, rest: bytes) -> None:
    answer = exchange(scene.edge.api, rest)
    assert (answer.status, answer.json["error"]["code"]) == (411, "length_required")
    assert scene.gateway.requests == []


@pytest.mark.parametrize("size", [8 * 2**20, 32 * 2**20])
def test_p5_large_bodies_reach_the_gateway(scene: Scene, size: int) -> None:
    assert post(scene.edge.api, "/v1/chat/completions", b"x" * size).status == 200
    assert [len(r.body) for r in scene.gateway.requests] == [size]


TOO_LARGE = "The request body is larger than 32 MiB. Send less context or smaller files."


@pytest.mark.parametrize("size", [32 * 2**20 + 1, 33 * 2**20])
def test_p5_larger_bodies_are_a_413_in_json(scene: Scene, size: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", scene.edge.api, timeout=10)
    connection.request("POST", "/v1/chat/completions", b"x" * size)
    response = connection.getresponse()
    assert (response.status, response.headers["content-type"]) == (413, "application/json")
    assert response.read().decode() == (
        f'{{"error":{{"message":"{TOO_LARGE}","type":"invalid_request_error","param":null,'
        '"code":"request_too_large"}}'
    )
    connection.close()
    assert scene.gateway.requests == []


def test_p5_the_413_waits_until_the_client_has_sent_all(scene: Scene) -> None:
    """A client that is still sending would see a broken pipe and miss the answer."""
    size = 32 * 2**20 + 1
    with socket.create_connection(("127.0.0.1", scene.edge.api), 10) as connection:
        head = f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
        connection.sendall(head.encode() + b"x" * (size - 1))
        assert select.select([connection], [], [], 0.3)[0] == []
        connection.sendall(b"x")
        answer = read_answer(connection)
    assert (answer.status, answer.json["error"]["code"]) == (413, "request_too_large")


@pytest.mark.parametrize(
    ("length", "status"),
    [
        ("100000000", 413),
        (str(2**62), 413),
        (str(2**64), 413),
        (str(2**63), 400),
        (str(2**64 + 5), 400),
        ("-1", 400),
        ("5, 6", 400),
    ],
)
def test_a_wrong_content_length_is_refused(scene: Scene, length: str, status: int) -> None:
    raw = f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n{{"
    with socket.create_connection(("127.0.0.1", scene.edge.api), 5) as connection:
        connection.sendall(raw.encode())
        assert read_answer(connection).status == status
    assert scene.gateway.requests == []


def test_a_client_that_asks_first_is_told_before_it_sends(scene: Scene) -> None:
    raw = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 33554433\r\n"
    answer = exchange(scene.edge.api, raw + b"Expect: 100-continue\r\n\r\n")
    assert (answer.status, answer.json) == (
        413,
        {"type": "error", "error": {"type": "request_too_large", "message": TOO_LARGE}},
    )


def test_requests_are_cleaned(scene: Scene) -> None:
    headers = {
        "Authorization": "Bearer sk-1",
        "anthropic-version": "2026-10-21",
        "x-litellm-timeout": "1",
        "X-LiteLLM-Tags": "a",
        "X-Affinity": "a",
        "X-Forwarded-For": "6.6.6.6",
        "X-Forwarded-Host": "evil.example",
        "Forwarded": "for=6.6.6.6",
        "X-Real-IP": "6.6.6.6",
        "Cookie": "token=1",
        "SCRIPT_NAME": "/x",
        "x_litellm_tags": "a",
        "Accept-Encoding": "gzip",
    }
    assert post(scene.edge.api, "/v1/messages?beta=true", headers=headers).status == 200
    (seen,) = scene.gateway.requests
    assert sorted((name.lower(), value) for name, value in seen.headers) == [
        ("anthropic-version", "2026-10-21"),
        ("authorization", "Bearer sk-1"),
        ("connection", "close"),
        ("content-length", "2"),
        ("host", "gateway.internal"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
    ]


def test_answers_are_cleaned(scene: Scene) -> None:
    def leak(request: Request, connection: Connection) -> None:
        connection.answer(
            200,
            {"ok": True},
            {
                "content-type": "application/json",
                "server": "uvicorn",
                "x-litellm-model-api-base": "http://10.0.0.1:8000",
                "X-LiteLLM-Key-Spend": "0",
                "llm_provider-date": "x",
                "x-ratelimit-api_key-limit-requests": "100",
            },
        )

    scene.scripts["gateway"] = leak
    assert post(scene.edge.api, "/v1/chat/completions").headers == {
        "content-length": "12",
        "content-type": "application/json",
        "x-ratelimit-api_key-limit-requests": "100",
    }
