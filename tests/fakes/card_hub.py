"""A Hugging Face hub on a loopback port that tells what repositories say of themselves.

Answers are functions of nothing but `pages`: path without query → (status, headers, body), or a
body alone. `drip`: seconds between the bytes of a body. `gate`: the token without which files of
repositories that ask for a consent are not shown, as the hub itself refuses them.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.fakes.serving import serving

REVISION = "b" * 40


@dataclass
class CardHub:
    pages: dict[str, Any] = field(default_factory=dict)
    drip: float = 0
    calls: list[str] = field(default_factory=list)
    gate: str = ""
    url: str = ""

    def add(self, repo: str, *, config: Any = None, template: str = "", **info: Any) -> None:
        files: dict[str, Any] = {"model.safetensors": 4_000_000_000, "config.json": 10}
        if template:
            files["chat_template.jinja"] = len(template)
        siblings = [{"rfilename": name, "size": size} for name, size in files.items()]
        self.pages[f"/api/models/{repo}"] = {
            "id": repo, "sha": REVISION, "siblings": siblings, "tags": [], **info
        }  # fmt: skip
        self.pages[f"/{repo}/resolve/{REVISION}/config.json"] = config or {}
        self.pages[f"/{repo}/resolve/{REVISION}/chat_template.jinja"] = template

    def answer(self, path: str, authorization: str = "") -> tuple[int, dict[str, str], bytes]:
        if authorization and authorization != f"Bearer {self.gate}":
            return 401, {"X-Error-Message": "Invalid credentials in Authorization header"}, b""
        if self.gate and "/resolve/" in path and not authorization:
            return 401, {"X-Error-Code": "GatedRepo"}, b"Access to model is restricted."
        found = self.pages.get(path.split("?")[0], (404, {}, b"{}"))
        if isinstance(found, tuple):
            return found
        return 200, {}, found.encode() if isinstance(found, str) else json.dumps(found).encode()


@contextmanager
def card_hub() -> Iterator[CardHub]:
    hub = CardHub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.calls.append(self.path)
            status, headers, body = hub.answer(self.path, self.headers.get("Authorization", ""))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                if not hub.drip:
                    self.wfile.write(body)
                for byte in body if hub.drip else b"":
                    self.wfile.write(bytes([byte]))
                    time.sleep(hub.drip)
            except OSError:
                self.close_connection = True

    with serving(Handler) as address:
        hub.url = f"http://{address}"
        yield hub
