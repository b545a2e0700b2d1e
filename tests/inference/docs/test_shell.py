"""The one line of a page, run by a real shell against a real server."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.docs import markup, shell
from inference.docs.pages import Page, load
from inference.docs.values import PLACEHOLDER
from tests.fakes.raw_http import Connection, RawServer, Request

PAGES = sorted(name for name, page in load("en").items() if page.file)
WITH_KEY = [name for name in PAGES if shell.needs_key(load("en")[name])]
TEXT = f'{{"key": "{PLACEHOLDER}", "quotes": "it\'s $HOME \\n", "file": "FILE"}}'


class Site:
    status = 200

    def answer(self, request: Request, connection: Connection) -> None:
        file = request.target.removeprefix("/files/")
        connection.answer(self.status, TEXT.replace("FILE", file).encode())


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def url(site: Site) -> Iterator[str]:
    with RawServer(site.answer) as server:
        yield f"http://127.0.0.1:{server.port}/files/"


def paste(
    page: Page, url: str, home: Path, *, key: str = "sk-abc123", own: str = "", after: str = ""
) -> str:
    """In her shell, which has a key of her `own`; `after` stands in a line below."""
    line = markup.fill_text(shell.one_line(page, url), {"key": key})
    run = subprocess.run(
        ["sh", "-uc", f"{f'NAN_API_KEY={own}; ' if own else ''}{line}\n{after}"],
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    return run.stdout + run.stderr


def targets(page: Page, home: Path) -> list[Path]:
    return [home / target.removeprefix("~/") for target in page.targets]


@pytest.mark.parametrize("name", PAGES)
def test_it_puts_every_file_in_its_place_for_her_alone(name: str, url: str, tmp_path: Path) -> None:
    page = load("en")[name]
    assert paste(page, url, tmp_path) == ""
    files = targets(page, tmp_path)
    assert sorted(file.name for file in files) == sorted(page.files)
    for file in files:
        wanted = TEXT.replace("FILE", file.name)
        if name in WITH_KEY:
            wanted = wanted.replace(PLACEHOLDER, "sk-abc123")
        assert file.read_text() == f"{wanted}\n"
        assert file.stat().st_mode & 0o777 == 0o600


def test_aider_gets_both_files_that_it_looks_for(url: str, tmp_path: Path) -> None:
    paste(load("en")["aider"], url, tmp_path)
    found = sorted(file.name for file in tmp_path.iterdir())
    assert found == [".aider.conf.yml", ".aider.model.metadata.json"]


THERE = {"en": "exists, not changed", "es": "ya existe, no se ha cambiado"}


@pytest.mark.parametrize("language", THERE)
@pytest.mark.parametrize("name", PAGES)
def test_a_file_that_is_there_stays(name: str, language: str, url: str, tmp_path: Path) -> None:
    page = load(language)[name]
    mine, *others = targets(page, tmp_path)
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")
    target = page.targets[0].replace("~", str(tmp_path), 1)
    assert paste(page, url, tmp_path) == f"{target}: {THERE[language]}\n"
    assert mine.read_text() == "mine"
    assert all(other.exists() for other in others)


@pytest.mark.parametrize("name", WITH_KEY)
def test_without_a_key_in_the_page_it_takes_that_of_her_shell(
    name: str, url: str, tmp_path: Path
) -> None:
    page = load("en")[name]
    said = paste(
        page, url, tmp_path, key=PLACEHOLDER, own="sk-mine", after='echo "$NAN_API_KEY ${f-} ${k-}"'
    )
    assert said == "sk-mine  \n"  # and leaves nothing in it
    (file,) = targets(page, tmp_path)
    assert '"key": "sk-mine"' in file.read_text()


def test_the_key_of_the_page_comes_before_that_of_her_shell(url: str, tmp_path: Path) -> None:
    page = load("en")["claude-code"]
    assert paste(page, url, tmp_path, own="sk-older", after='echo "$NAN_API_KEY"') == "sk-older\n"
    assert '"key": "sk-abc123"' in targets(page, tmp_path)[0].read_text()


NO_KEY = {
    "en": "not written: type your key into the page first, or set NAN_API_KEY",
    "es": "no se ha escrito: pon antes tu clave en la página, o en NAN_API_KEY",
}


@pytest.mark.parametrize("own", ["", PLACEHOLDER])
@pytest.mark.parametrize("language", NO_KEY)
@pytest.mark.parametrize("name", WITH_KEY)
def test_no_file_is_written_without_a_key(
    name: str, language: str, own: str, url: str, tmp_path: Path
) -> None:
    page = load(language)[name]
    said = paste(page, url, tmp_path, key=PLACEHOLDER, own=own)
    target = page.targets[0].replace("~", str(tmp_path), 1)
    assert said == f"{target}: {NO_KEY[language]}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_fails_leaves_nothing(site: Site, url: str, tmp_path: Path) -> None:
    site.status = 503
    page = load("en")["opencode"]
    assert "503" in paste(page, url, tmp_path)
    assert list(tmp_path.iterdir()) == []
