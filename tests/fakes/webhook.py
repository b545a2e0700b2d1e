"""Something that takes a POST on loopback, as a bridge to a chat would, with bad manners."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class FakeWebhook:
    """`status` of the next answers; `seconds` before each; 0 as status ends the connection."""

    status: int = 200
    seconds: float = 0
    heard: list[dict[str, Any]] = field(default_factory=list)
    path: str = "/hooks/T0/not-to-be-logged"

    def __enter__(self) -> Self:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                return

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == fake.path
                fake.heard.append(json.loads(body))
                time.sleep(fake.seconds)
                if fake.status:
                    self.send_response(fake.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}{self.path}"

    def states(self) -> list[tuple[str, str]]:
        return [(message["code"], message["state"]) for message in self.heard]
