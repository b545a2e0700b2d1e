"""Something that takes a POST on loopback, as a bridge to a chat would, with bad manners."""

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from tests.fakes.serving import serving


@dataclass
class FakeWebhook:
    """`status` of the next answers; `seconds` before each; 0 as status ends the connection."""

    status: int = 200
    seconds: float = 0
    heard: list[dict[str, Any]] = field(default_factory=list)
    path: str = "/hooks/T0/not-to-be-logged"
    url: str = field(init=False)

    def __enter__(self) -> Self:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == fake.path
                fake.heard.append(json.loads(body))
                time.sleep(fake.seconds)
                if fake.status:
                    self.send_response(fake.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

        self._ending = ExitStack()
        self.url = f"http://{self._ending.enter_context(serving(Handler))}{self.path}"
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def states(self) -> list[tuple[str, str]]:
        return [(message["code"], message["state"]) for message in self.heard]
