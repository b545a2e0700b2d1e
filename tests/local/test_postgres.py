"""The embedded Postgres itself: where it lives, as whom, and who may enter."""

import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from nan.local import postgres, state
from nan.local.config import Stack

from .conftest import SmallStack, wait_until


class Database(SmallStack):
    def command(self, scenario: str, verb: str) -> list[str]:
        real = [sys.executable, "-m", "nan.local", verb, "--state-dir", str(self.folder)]
        return [*real, "--free-ports", *(["--only", "postgres"] if verb == "run" else [])]

    @property
    def urls(self) -> dict[str, str]:
        ports = json.loads((self.folder / "ports.json").read_text())
        stack = Stack.load(state_dir=self.folder, ports=ports, environ={})
        return {"nan": stack.database_url, "litellm": stack.litellm_database_url}


@pytest.fixture
def database(folder: Path):
    place = folder / "private"
    place.mkdir(mode=0o700)  # as under /root: the user that Postgres runs as can't go there
    found = Database(place)
    yield found
    if found.process is not None and found.process.poll() is None:
        found.stop()
    state.end_strays(place, seconds=5)
    postgres.forget(place)


def test_data_survives_a_restart_and_a_kill(database: Database) -> None:
    database.start("")
    with psycopg.connect(database.urls["nan"], autocommit=True) as connection:
        connection.execute("create table kept as select 42 as answer")
    assert database.stop() == 0
    database.start("")
    backend = psycopg.connect(database.urls["nan"])
    database.process.kill()
    database.process.wait()
    os.kill(database.part("postgres")["pid"], 9)
    database.start("")
    backend.close()
    with psycopg.connect(database.urls["nan"]) as connection:
        assert connection.execute("select answer from kept").fetchone() == (42,)
    database.stop()
    assert state.strays(database.folder) == []


def test_strays_of_postgres_are_found_by_their_data(database: Database) -> None:
    """Backends overwrite their environment with a title."""
    database.start("")
    with psycopg.connect(database.urls["nan"]):
        postmaster = psutil.Process(database.part("postgres")["pid"])
        family = {postmaster.pid, *(child.pid for child in postmaster.children())}
        database.stop(9)
        assert family <= {process.pid for process in state.strays(database.folder)}
        state.end_strays(database.folder)
        assert not any(psutil.pid_exists(pid) for pid in family)


def test_each_role_enters_its_own_database_only(database: Database) -> None:
    database.start("")
    nan, litellm = database.urls["nan"], database.urls["litellm"]
    for url in (nan, litellm):
        with psycopg.connect(url) as connection:
            connection.execute("create table mine ()")
    for url, other in ((nan, "/litellm"), (litellm, "/nan")):
        with pytest.raises(psycopg.OperationalError, match="permission denied"):
            psycopg.connect(urlsplit(url)._replace(path=other).geturl())
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(nan, password="wrong")


def test_it_listens_on_loopback_only_and_never_runs_as_root(database: Database) -> None:
    database.start("")
    process = psutil.Process(database.part("postgres")["pid"])
    listening = [c.laddr for c in process.net_connections() if c.status == psutil.CONN_LISTEN]
    assert listening == [("127.0.0.1", database.part("postgres")["port"])]
    assert process.uids().effective != 0
    assert [c for c in process.net_connections(kind="unix") if c.laddr] == []


def test_a_private_folder_keeps_its_permissions(database: Database) -> None:
    """As root the cluster lives outside, behind a link; as a user it is simply there."""
    database.start("")
    assert database.folder.stat().st_mode & 0o777 == 0o700
    assert (database.folder / "postgres").is_symlink() == (os.geteuid() == 0)
    outside = (database.folder / "postgres").resolve()
    database.stop()
    cleaned = database.call("", "clean-data", "--yes")
    assert cleaned.returncode == 0, cleaned.stderr
    assert not outside.exists()
    assert [path.name for path in database.folder.iterdir()] == []


def test_clean_data_asks_first(database: Database) -> None:
    database.start("")
    database.stop()
    asked = database.call("", "clean-data", answer="\n")
    assert (asked.returncode, asked.stdout.endswith("Nothing was changed.\n")) == (0, True)
    assert (database.folder / "secrets.json").exists()


def test_clean_data_refuses_while_the_stack_runs(database: Database) -> None:
    database.start("")
    refused = database.call("", "clean-data", "--yes")
    assert refused.returncode == 2
    assert "already running" in refused.stderr
    wait_until(lambda: database.record["ready"])


def test_an_interrupted_initdb_is_started_over(database: Database) -> None:
    database.start("")
    database.stop()
    home = (database.folder / "postgres").resolve()
    (home / "initdb-unfinished").touch()
    database.start("")
    with psycopg.connect(database.urls["nan"]) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
