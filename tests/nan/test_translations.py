"""Spanish is complete: every string of the source has its translation, none is out of date."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polib
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("nan", "members", "inference", "templates", "static")
CATALOGUE = "locale/es/LC_MESSAGES/django.po"


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> polib.POFile:
    """The catalogue as `make messages` would leave it, made in a copy."""
    copy = tmp_path_factory.mktemp("messages")
    for name in (*SOURCES, "locale"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "manage.py", copy)
    run = subprocess.run(
        [sys.executable, "manage.py", "makemessages", "--locale", "es", "--no-obsolete"],
        capture_output=True,
        text=True,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return polib.pofile(str(copy / CATALOGUE))


def test_every_string_is_translated(collected: polib.POFile) -> None:
    assert [entry.msgid for entry in collected if not entry.translated()] == []


def test_catalogue_is_up_to_date(collected: polib.POFile) -> None:
    kept = polib.pofile(str(ROOT / CATALOGUE))
    assert {e.msgid for e in kept} == {e.msgid for e in collected}


def test_placeholders_survive(collected: polib.POFile) -> None:
    """A translation that loses or invents a %(name)s breaks the page that shows it."""
    wrong = [
        entry.msgid
        for entry in collected
        for text in (entry.msgstr, *entry.msgstr_plural.values())
        if text and names(text) - names(entry.msgid + (entry.msgid_plural or ""))
    ]
    assert wrong == []


def names(text: str) -> set[str]:
    return {match[0] for match in re.finditer(r"%\(\w+\)[sd]|\{\w+\}", text)}
