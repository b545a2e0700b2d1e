"""The one line of a page, run by a real shell against a real server."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.docs import markup, shell
from inference.docs.pages import Page, load
from inference.examples import PLACEHOLDER
from tests.fakes.raw_http import Connection, RawServer, Request

PAGES = sorted(name for name, page in load("en").items() if page.file)
TEXT = f'{{"key": "{PLACEHOLDER}", "quotes": "it\'s $HOME \\n"}}'


class Site:
    status = 200

    def answer(self, request: Request, connection: Connection) -> None:
        connection.answer(self.status, TEXT.encode())


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def url(site: Site) -> Iterator[str]:
    with RawServer(site.answer) as server:
        yield f"http://127.0.0.1:{server.port}/file"


def paste(page: Page, url: str, home: Path, key: str = "sk-abc123") -> str:
    line = markup.fill_text(shell.one_line(page, url), {"key": key})
    run = subprocess.run(
        ["sh", "-c", line],
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    return run.stdout + run.stderr


def target(page: Page, home: Path) -> Path:
    return home / page.path.removeprefix("~/")


@pytest.mark.parametrize("name", PAGES)
def test_it_puts_the_file_in_its_place_for_her_alone(name: str, url: str, tmp_path: Path) -> None:
    page = load("en")[name]
    said = paste(page, url, tmp_path)
    file = target(page, tmp_path)
    has_key = "{{ key }}" in markup.read_code(page.name, page.file)
    wanted = TEXT.replace(PLACEHOLDER, "sk-abc123") if has_key else TEXT
    assert (said, file.read_text()) == ("", f"{wanted}\n")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", PAGES)
def test_a_file_that_is_there_stays(name: str, url: str, tmp_path: Path) -> None:
    page = load("en")[name]
    file = target(page, tmp_path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    assert "exists, not changed" in paste(page, url, tmp_path)
    assert file.read_text() == "mine"


def test_a_download_that_fails_leaves_nothing(site: Site, url: str, tmp_path: Path) -> None:
    site.status = 503
    page = load("en")["opencode"]
    assert "503" in paste(page, url, tmp_path)
    assert list(tmp_path.iterdir()) == []
