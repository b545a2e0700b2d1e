"""Starting, stopping, killing and starting again."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.gateway import parts
from tests.gateway.client import Gateway, Member, Models, statuses
from tests.gateway.conftest import Own
from tests.waiting import at_once


def run(*arguments: str | Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, parts.DEPLOY / "run.py", "--port", "1", *arguments]
    return subprocess.run(
        [str(part) for part in command],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("LITELLM_MASTER_KEY", "", "LITELLM_MASTER_KEY is not set."),
        ("LITELLM_MASTER_KEY", "sk-1234", "LITELLM_MASTER_KEY is too short"),
        ("LITELLM_SALT_KEY", "", "LITELLM_SALT_KEY is not set."),
        ("DATABASE_URL", "", "DATABASE_URL must be set."),
    ],
)
def test_refuses_to_start_without_its_secrets(
    gateway_home: Path, tmp_path: Path, name: str, value: str, complaint: str
) -> None:
    """P10."""
    environ = parts.environment("postgresql://nowhere", 1, parts.secrets_of_a_gateway()) | {
        name: value
    }
    done = run("--home", gateway_home, "--config", tmp_path / "none.json", environ=environ)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert not [secret for secret in environ.values() if len(secret) > 40 and secret in done.stderr]


def test_refuses_to_start_with_an_unexpected_startup_file(tmp_path: Path) -> None:
    """P9, at run time: the venv's Python, which would execute the file, is not started."""
    site_packages = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    site_packages.mkdir(parents=True)
    (site_packages / "hostile.pth").write_text("import os; os.abort()")
    (tmp_path / "installed.json").write_text("{}")
    config = tmp_path / "config.json"
    config.write_text("{}")
    environ = parts.environment("postgresql://nowhere", 1, parts.secrets_of_a_gateway())
    done = run("--home", tmp_path, "--config", config, environ=environ)
    assert done.returncode == 1
    assert "hostile.pth" in done.stderr


def test_a_killed_gateways_slots_are_free_after_the_restart(
    own_gateway: Own, engine: str, tmp_path: Path
) -> None:
    """And keys and models that were made at run time are still there."""
    started = {
        "home": own_gateway.home,
        "config": own_gateway.config,
        "environ": own_gateway.environ,
    }
    port = parts.free_port()
    with (
        parts.gateway(tmp_path, port=port, **started) as url,
        Gateway(url, key_of(own_gateway)) as gateway,
    ):
        models = Models.add(gateway, engine)
        key, _ = gateway.generate()
        take_all_slots_and_kill(url, port, key, models)
    with (
        parts.gateway(tmp_path, port=port, **started) as url,
        Gateway(url, key_of(own_gateway)) as gateway,
        httpx.Client(base_url=url, timeout=30) as http,
    ):
        bob = Member(key=key, http=http)
        assert statuses(at_once([lambda: bob.chat(models["slow"])] * 5)) == [200] * 5
        Models(gateway, engine, models.prefix).remove()


def key_of(own: Own) -> str:
    return own.environ["LITELLM_MASTER_KEY"]


def take_all_slots_and_kill(url: str, port: int, key: str, models: Models) -> None:
    def hold() -> None:
        with httpx.Client(base_url=url, timeout=30) as http:
            try:
                Member(key=key, http=http).chat(models["hang"])
            except httpx.TransportError:
                return

    threads = [threading.Thread(target=hold) for _ in range(5)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    with httpx.Client(base_url=url, timeout=30) as http:
        assert Member(key=key, http=http).chat(models["plain"]).status_code == 429
    os.kill(listener(port), signal.SIGKILL)
    for thread in threads:
        thread.join()


def listener(port: int) -> int:
    """Pid of the process whose command line has this port."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        words = path.read_bytes().split(b"\0")
        if b"--port" in words and words[words.index(b"--port") + 1] == str(port).encode():
            return int(path.parent.name)
    raise AssertionError(f"nothing runs on {port}")


def test_the_database_was_migrated_once(own_gateway: Own) -> None:
    """Every migration has its record, and a second run applies none."""
    command = [own_gateway.home / "venv" / "bin" / "python", parts.DEPLOY / "migrate.py"]
    done = subprocess.run(
        command, env=own_gateway.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "gateway: 0 database migrations applied\n"
    with psycopg.connect(own_gateway.database) as connection:
        count = connection.execute("SELECT count(*) FROM nan_gateway_migration").fetchone()
    assert count == (
        len(
            list(
                own_gateway.home.glob(
                    "venv/lib/*/site-packages/litellm_proxy_extras/migrations/*/migration.sql"
                )
            )
        ),
    )


def test_a_model_of_the_file_answers_to_both_its_names(own_gateway: Own) -> None:
    with Gateway(own_gateway.url, key_of(own_gateway)) as gateway, gateway.member() as bob:
        listed = {
            model["id"]: model.get("max_input_tokens")
            for model in bob.get("/v1/models").json()["data"]
        }
        assert {name: listed[name] for name in ("stable", "known-by-itself")} == {
            "stable": 32768,
            "known-by-itself": 32768,
        }
        assert bob.chat("stable").status_code == 200
        assert bob.chat("known-by-itself").status_code == 200


def test_a_full_database_is_never_an_invalid_key(own_gateway: Own) -> None:
    """P6: 503, and 200 again as soon as there is room."""
    with Gateway(own_gateway.url, key_of(own_gateway)) as gateway, gateway.member() as bob:
        held = take_all_connections(own_gateway.database)
        try:
            answer = bob.chat("stable")
        finally:
            for connection in held:
                connection.close()
        assert (answer.status_code, answer.json()["error"]["type"]) == (503, "no_db_connection")
        time.sleep(1)
        assert bob.chat("stable").status_code == 200


def take_all_connections(url: str) -> list[psycopg.Connection]:
    """Ends the gateway's own and takes their places."""
    held = [psycopg.connect(url, autocommit=True)]
    end_others = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name <> ''"
    )
    for _ in range(5):
        held[0].execute(end_others)
        try:
            while True:
                held.append(psycopg.connect(url, autocommit=True))
        except psycopg.OperationalError:
            continue
    return held
