"""LiteLLM's admin API on a loopback port, with bad manners on demand.

Held to the real one by tests/inference/test_gateway_contract.py. `manners` are used up one per call
of the path they name: `fake.misbehave("/key/generate", Manner.ACT_THEN_DROP)`.
"""

import hashlib
import json
import socket
import threading
import time
import uuid
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.fakes.gateway_models import FakeModels
from tests.fakes.gateway_usage import FakeUsage

MASTER_KEY = "sk-master-of-the-fake-gateway-0123456789"


class Manner(Enum):
    FAIL = "answers 500 and does nothing"
    ACT_THEN_FAIL = "does it, then answers 500"
    ACT_THEN_DROP = "does it, then closes the connection"
    HANG = "does nothing and answers after `hang_seconds`"
    ACT_LATE = "answers after `hang_seconds`, and does it only then"
    LIE = "answers like a success and does nothing"
    MIX_UP = "answers like a success, about another key"
    REFUSE = "answers 400"
    GARBAGE = "answers 200 with something that is not JSON"


@dataclass
class Call:
    method: str
    path: str
    body: dict[str, Any]


@dataclass
class FakeGateway:
    hang_seconds: float = 1.2
    # Between looking for an alias and inserting: LiteLLM's race, which lets several through.
    race_seconds: float = 0.0
    seconds_per_call: float = 0.0
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    models: FakeModels = field(default_factory=FakeModels)
    calls: list[Call] = field(default_factory=list)
    usage: FakeUsage = field(default_factory=FakeUsage)
    peaks: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self.manners: dict[str, deque[Manner]] = defaultdict(deque)
        self.always: dict[str, Manner] = {}
        self.port = 0

    # -- Life ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Again on the same port after `stop`, as a gateway that comes back does."""
        fake = self

        class Handler(_Handler):
            gateway = fake

        self.server = _Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.server.close_connections()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # -- For tests -------------------------------------------------------------------------------

    def misbehave(self, path: str, *manners: Manner) -> None:
        self.manners[path].extend(manners)

    def of(self, owner: object) -> list[dict[str, Any]]:
        return [key for key in self.keys.values() if key["user_id"] == str(owner)]

    def working(self, owner: object) -> list[dict[str, Any]]:
        return [key for key in self.of(owner) if not key["blocked"]]

    def paths(self) -> list[str]:
        return [call.path for call in self.calls]

    def admits(self, value: str) -> bool:
        key = self.keys.get(_hash(value))
        return key is not None and not key["blocked"]

    # -- LiteLLM's behaviour ---------------------------------------------------------------------

    def generate(self, body: dict[str, Any]) -> tuple[int, Any]:
        if not str(body.get("key", "")).startswith("sk-") or len(body["key"]) < 16:
            return _error(400, "{'error': \"Invalid key format.\"}")
        alias = body.get("key_alias")
        if any(key["key_alias"] == alias for key in list(self.keys.values())):
            return _error(400, f"Key with alias '{alias}' already exists.")
        time.sleep(self.race_seconds)
        token = _hash(body["key"])
        row = {
            "token": token,
            "key_name": f"sk-...{body['key'][-4:]}",
            "key_alias": alias,
            "user_id": body.get("user_id"),
            "rpm_limit": body.get("rpm_limit"),
            "max_parallel_requests": body.get("max_parallel_requests"),
            "allowed_routes": body.get("allowed_routes", []),
            "metadata": body.get("metadata", {}),
            "tpm_limit": body.get("tpm_limit"),
            "max_budget": body.get("max_budget"),
            "budget_duration": body.get("budget_duration"),
            "expires": body.get("duration"),
            "blocked": None,
            "created_at": datetime.now(UTC).isoformat(),
        }
        with self.lock:
            self.keys.setdefault(token, row)
            self._note_peak(row["user_id"])
        return 200, {**row, "key": body["key"]}

    def change(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        with self.lock:
            key = self.keys.get(_token(body["key"]))
            if key is None:
                return _error(404, "Key not found.")
            if path == "/key/update":
                changed = {k: v for k, v in body.items() if k in key and k != "key"}
                key.update(changed)
            else:
                key["blocked"] = path == "/key/block"
            self._note_peak(key["user_id"])
            return 200, dict(key)

    def delete(self, body: dict[str, Any]) -> tuple[int, Any]:
        with self.lock:
            tokens = [_token(key) for key in body.get("keys", [])]
            found = [token for token in tokens if token in self.keys]
            for token in found:
                del self.keys[token]
        return (200, {"deleted_keys": body["keys"]}) if found else _error(404, "No keys found")

    def list(self, query: dict[str, str]) -> tuple[int, Any]:
        size, page = int(query.get("size", 10)), int(query.get("page", 1))
        if size > 100:
            return 422, {"detail": "size"}
        rows = sorted(self.keys.values(), key=lambda key: key["created_at"])
        if query.get("sort_order", "desc") == "desc":
            rows.reverse()
        if "key_alias" in query:
            rows = [row for row in rows if row["key_alias"] == query["key_alias"]]
        shown = rows[(page - 1) * size : page * size]
        return 200, {
            "keys": shown if query.get("return_full_object") else [r["token"] for r in shown],
            "total_count": len(rows),
            "current_page": page,
            "total_pages": -(-len(rows) // size),
        }

    def activity(self, query: dict[str, str]) -> tuple[int, Any]:
        return 200, self.usage.answer(query)

    def _note_peak(self, owner: str) -> None:
        """The most that this owner's working keys together were ever granted."""
        keys = self.working(owner)
        rpm = sum(key["rpm_limit"] or 0 for key in keys)
        parallel = sum(key["max_parallel_requests"] or 0 for key in keys)
        before = self.peaks.get(owner, (0, 0))
        self.peaks[owner] = (max(before[0], rpm), max(before[1], parallel))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away are part of the game."""


class _Handler(BaseHTTPRequestHandler):
    gateway: FakeGateway
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer({})

    def do_PATCH(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._answer(json.loads(self.rfile.read(length) or b"{}"))

    def _answer(self, body: dict[str, Any]) -> None:
        fake, url = self.gateway, urlsplit(self.path)
        fake.calls.append(Call(self.command, url.path, body))
        time.sleep(fake.seconds_per_call)
        waiting = fake.manners[url.path]
        manner = waiting.popleft() if waiting else fake.always.get(url.path)
        if manner in (Manner.HANG, Manner.ACT_LATE):
            time.sleep(fake.hang_seconds)
        if manner == Manner.LIE:
            return self._send(200, {**body, "token": _hash(body.get("key", ""))})
        if manner == Manner.MIX_UP:
            return self._send(200, {**body, "token": _hash("another")})
        if manner == Manner.REFUSE:
            return self._send(*_error(400, "no"))
        if manner == Manner.GARBAGE:
            return self._send(200, None)
        if manner in (Manner.FAIL, Manner.HANG):
            return self._send(*_error(500, "Internal Server Error."))
        answer = self._act(url.path, body, {k: v[0] for k, v in parse_qs(url.query).items()})
        if manner == Manner.ACT_THEN_DROP:
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        if manner == Manner.ACT_THEN_FAIL:
            return self._send(*_error(500, "Internal Server Error."))
        return self._send(*answer)

    def _act(self, path: str, body: dict[str, Any], query: dict[str, str]) -> tuple[int, Any]:
        fake = self.gateway
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if path == "/v1/models" and (fake.admits(bearer) or bearer == MASTER_KEY):
            return 200, {"object": "list", "data": [{"id": "nan", "object": "model"}]}
        if bearer != MASTER_KEY:
            return _error(403 if fake.admits(bearer) else 401, "Authentication Error")
        match path:
            case "/key/generate":
                return fake.generate(body)
            case "/key/update" | "/key/block" | "/key/unblock":
                return fake.change(path, body)
            case "/key/delete":
                return fake.delete(body)
            case "/key/list":
                return fake.list(query)
            case "/user/daily/activity":
                return fake.activity(query)
        return fake.models.answer(self.command, path, body)

    def _send(self, status: int, body: Any) -> None:
        content = b"<html>" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


def foreign_key(fake: FakeGateway, **fields: Any) -> str:
    """Puts a key at the gateway that our rows know nothing of; its token."""
    value = f"sk-{uuid.uuid4().hex}"
    body = {"key": value, "key_alias": str(uuid.uuid4()), "rpm_limit": 1, **fields}
    return str(fake.generate({"max_parallel_requests": 1, "user_id": "x", **body})[1]["token"])


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def _token(key: str) -> str:
    return _hash(key) if key.startswith("sk-") else key


def _error(status: int, message: str) -> tuple[int, Any]:
    return status, {"error": {"message": message, "type": "error", "code": str(status)}}
