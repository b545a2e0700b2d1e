"""While the database is known to be away, who asks hears so at once; now and then one tries."""

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from nan.postgres import base
from nan.postgres.base import Away
from tests.nan.test_outage import environment_without_database

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import django, json, time
django.setup()
from django.db import OperationalError, connection
def ask():
    began = time.monotonic()
    try:
        connection.ensure_connection()
    except OperationalError:
        pass
    return time.monotonic() - began
print(json.dumps([ask(), *[ask() for _ in range(30)]]))
"""


def fail() -> None:
    raise psycopg.OperationalError


def ask(away: Away, *, there: bool) -> str:
    """What came of it: *had*, *failed* after a try, or *told* without one."""
    tried = False
    try:
        with away.asking():
            tried = True
            if not there:
                fail()
    except psycopg.OperationalError:
        return "failed" if tried else "told"
    return "had"


def test_one_at_a_time_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(base.time, "monotonic", lambda: now[0])
    away = Away()
    assert [ask(away, there=True) for _ in range(2)] == ["had", "had"]
    assert [ask(away, there=False) for _ in range(3)] == ["failed", "told", "told"]
    now[0] += base.PAUSE_SECONDS
    with suppress(psycopg.OperationalError), away.asking():
        meanwhile = ask(away, there=True)
        fail()
    assert (meanwhile, ask(away, there=True)) == ("told", "told")
    now[0] += base.PAUSE_SECONDS
    assert [ask(away, there=True) for _ in range(2)] == ["had", "had"]


def test_a_try_that_never_ends_does_not_keep_others_from_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(base.time, "monotonic", lambda: now[0])
    away = Away()
    ask(away, there=False)
    now[0] += base.PAUSE_SECONDS
    with away.asking():
        now[0] += base.TRY_SECONDS
        assert ask(away, there=True) == "had"


def test_other_errors_say_nothing_of_the_database() -> None:
    away = Away()
    with pytest.raises(psycopg.ProgrammingError), away.asking():
        raise psycopg.ProgrammingError
    assert ask(away, there=True) == "had"


def test_a_process_without_its_database_waits_once() -> None:
    """Thirty requests would otherwise keep a thread for a minute and a half."""
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-c", ASK],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment_without_database(),
        timeout=60,
        check=True,
    )
    first, *others = json.loads(run.stdout)
    assert 2 < first < 6
    assert sum(others) < 1
    assert time.monotonic() - began < 30
