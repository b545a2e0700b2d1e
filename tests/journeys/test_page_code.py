"""What pages show to be copied, run as it is shown, against the real edge and gateway: it answers,
and makes the calls that the page's badge speaks of."""

import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from inference.docs.pages import load
from tests.clients.relay import Relay, relayed
from tests.clients.running import code_of
from tests.stack import Stack
from tests.visitor import Visitor

WITH_CODE = [name for name, page in load("en").items() if page.is_guide and page.needs]


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    return Visitor(stack).become_member().create_key()


@pytest.fixture
def relay(stack: Stack) -> Iterator[Relay]:
    with relayed(lambda: stack.api) as found:
        yield found


def red_square() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    rows = zlib.compress((b"\0" + b"\xff\0\0" * 64) * 64)
    header = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("name", WITH_CODE)
def test_a_guides_code_answers_and_makes_the_calls_it_names(
    stack: Stack, key: str, relay: Relay, tmp_path: Path, name: str, language: str
) -> None:
    page = load(language)[name]
    read = httpx.get(f"{stack.site}/docs/{name}/", headers={"Accept-Language": language})
    code = code_of(read.raise_for_status().text)[page.title]
    (tmp_path / "picture.png").write_bytes(red_square())
    said = run(code.replace(stack.api, relay.url).replace("YOUR_KEY", key), tmp_path)
    assert said.strip()
    assert relay.calls == set(page.needs)


def run(code: str, folder: Path) -> str:
    how = ["sh", "-e", "-c"] if code.startswith("curl") else [sys.executable, "-c"]
    done = subprocess.run(
        [*how, code],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
