"""A small Hugging Face hub on a loopback port: model info, files, ranges, and bad manners.

https://huggingface.co/docs/hub/api : `huggingface_hub` asks for the model's info and tree, then
HEADs and GETs each file below /resolve/.
"""

import hashlib
import json
import re
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from tests.fakes.serving import serving


@dataclass
class FakeHub:
    """`files` of one repository at one commit. `cut_after`: bytes of a body, then the connection
    breaks, once for each file. `bytes_per_second`: how slow it is."""

    repo: str
    revision: str
    files: dict[str, bytes]
    gated: bool = False
    cut_after: int | None = None
    bytes_per_second: float = 0
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path, Range."""
    tokens: set[str] = field(default_factory=set)
    sent: dict[str, int] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    url: str = field(init=False)

    def __enter__(self) -> Self:
        fake = self

        class Handler(_Handler):
            hub = fake

        self._ending = ExitStack()
        self.url = f"http://{self._ending.enter_context(serving(Handler))}"
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.calls.append((self.command, path, self.headers.get("Range", "")))
        self.hub.tokens.add(self.headers.get("Authorization", ""))
        prefix = f"/api/models/{self.hub.repo}"
        if self.hub.gated:
            return self._json(403, {"error": "gated"}, {"X-Error-Code": "GatedRepo"})
        if path in (prefix, f"{prefix}/revision/{self.hub.revision}"):
            return self._json(200, self._info())
        if path == f"{prefix}/tree/{self.hub.revision}":
            return self._json(200, [self._entry(name) for name in self.hub.files])
        resolve = re.fullmatch(f"/{self.hub.repo}/resolve/{self.hub.revision}/(.+)", path)
        if resolve and resolve[1] in self.hub.files:
            return self._file(resolve[1], body=body)
        if path.startswith(f"{prefix}/"):
            return self._json(404, {"error": "no"}, {"X-Error-Code": "RevisionNotFound"})
        return self._json(404, {"error": "no"}, {"X-Error-Code": "RepoNotFound"})

    def _info(self) -> dict[str, Any]:
        siblings = [{"rfilename": name, "size": len(content), "blobId": etag(content)}
                    for name, content in self.hub.files.items()]  # fmt: skip
        return {"id": self.hub.repo, "modelId": self.hub.repo, "sha": self.hub.revision,
                "private": False, "tags": [], "siblings": siblings}  # fmt: skip

    def _entry(self, name: str) -> dict[str, Any]:
        content = self.hub.files[name]
        return {"type": "file", "path": name, "size": len(content), "oid": etag(content)}

    def _file(self, name: str, *, body: bool) -> None:
        content = self.hub.files[name]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin = int(wanted[1]) if wanted else 0
        end = int(wanted[2]) + 1 if wanted and wanted[2] else len(content)
        part = content[begin:end]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", f'"{etag(content)}"')
        self.send_header("X-Repo-Commit", self.hub.revision)
        self.send_header("Accept-Ranges", "bytes")
        if wanted:
            self.send_header(
                "Content-Range", f"bytes {begin}-{begin + len(part) - 1}/{len(content)}"
            )
        self.end_headers()
        if body:
            self._send(name, part)

    def _send(self, name: str, part: bytes) -> None:
        cut = self.hub.cut_after if name not in self.hub.cut else None
        if cut is not None and cut < len(part):
            self.hub.cut.add(name)
            part = part[:cut]
            self.close_connection = True
        step = 65_536
        for at in range(0, len(part), step):
            chunk = part[at : at + step]
            try:
                self.wfile.write(chunk)
                self.wfile.flush()
            except OSError:
                self.close_connection = True
                return
            self.hub.sent[name] = self.hub.sent.get(name, 0) + len(chunk)
            if self.hub.bytes_per_second:
                time.sleep(len(chunk) / self.hub.bytes_per_second)

    def _json(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(text)


def etag(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
