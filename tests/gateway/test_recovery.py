"""P10: a backup restored on a clean host, a new master key, and what goes with the salt.

The gateway here runs on a restored dump, beside the one that the dump was taken from.
"""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.gateway import parts
from tests.gateway.client import Gateway, Member, Models, token
from tests.gateway.conftest import Own

TOOLS = parts.postgres_binaries()


@dataclass(frozen=True)
class Restored:
    """A clean host with the dump in it, and what the dump holds."""

    folder: Path
    own: Own
    environ: dict[str, str]
    model: str
    key: str
    blocked: str

    @contextmanager
    def running(self, **changes: str) -> Iterator[tuple[str, Member, Member]]:
        """(URL, the member, the member who is blocked) of a gateway with `changes` of secrets."""
        gateway = parts.gateway(
            self.folder,
            home=self.own.home,
            config=self.own.config,
            environ=self.environ | changes,
        )
        with gateway as url, httpx.Client(base_url=url, timeout=30) as http:
            yield url, Member(key=self.key, http=http), Member(key=self.blocked, http=http)


@pytest.fixture(scope="module")
def restored(own_gateway: Own, engine: str) -> Iterator[Restored]:
    name = f"kept-{secrets.token_hex(4)}"
    with Gateway(own_gateway.url, own_gateway.environ["LITELLM_MASTER_KEY"]) as gateway:
        assert Models(gateway, engine, "kept").add_one(name, "plain").status_code == 200
        (key, _), (blocked, _) = gateway.generate(rpm_limit=7), gateway.generate()
        gateway.post("/key/block", key=token(blocked))
        with (
            tempfile.TemporaryDirectory(prefix="nan-restored-", ignore_cleanup_errors=True) as path,
            parts.postgres(Path(path)) as database,
            parts.valkey(Path(path)) as port,
        ):
            move(own_gateway.database, database, Path(path) / "litellm.dump")
            gateway.post("/model/delete", id=name)
            kept = {
                name: own_gateway.environ[name]
                for name in ("LITELLM_MASTER_KEY", "LITELLM_SALT_KEY")
            }
            environ = parts.environment(database, port, kept)
            yield Restored(Path(path), own_gateway, environ, name, key, blocked)


def move(source: str, target: str, dump: Path) -> None:
    """As the runbook says."""
    subprocess.run([TOOLS / "pg_dump", "--format=custom", "--file", dump, source], check=True)
    restore = [TOOLS / "pg_restore", "--no-owner", "--exit-on-error", "--dbname", target, dump]
    subprocess.run(restore, check=True)


def test_a_restored_backup_works_and_takes_a_new_master_key(restored: Restored) -> None:
    """Keys, limits, blocks and models are there; the new master key locks nobody out but the old.

    One test, because Valkey has to remember the old master key when the new one comes.
    """
    old, new = restored.environ["LITELLM_MASTER_KEY"], "sk-" + secrets.token_urlsafe(32)
    with restored.running() as (url, alice, bob):
        assert answers(restored, alice, bob) == {"stored": 200, "file": 200, "blocked": 401}
        assert limits(url, old, alice) == (7, 5)
        assert (admin(url, old), admin(url, new)) == (200, 401)
    with restored.running(LITELLM_MASTER_KEY=new) as (url, alice, bob):
        assert (admin(url, old), admin(url, new)) == (401, 200)
        assert answers(restored, alice, bob) == {"stored": 200, "file": 200, "blocked": 401}
        with Gateway(url, new) as gateway, gateway.member() as carol:
            assert carol.chat(restored.model).status_code == 200


def test_without_the_salt_stored_models_are_lost_and_keys_are_not(restored: Restored) -> None:
    """So the salt is backed up with the database; models of the file go on."""
    with restored.running(LITELLM_SALT_KEY="sk-" + secrets.token_urlsafe(32)) as (_, alice, bob):
        found = answers(restored, alice, bob)
    assert found.pop("stored") in {400, 404, 500}
    assert found == {"file": 200, "blocked": 401}


def answers(restored: Restored, alice: Member, bob: Member) -> dict[str, int]:
    return {
        "stored": alice.chat(restored.model).status_code,
        "file": alice.chat("stable").status_code,
        "blocked": bob.chat("stable").status_code,
    }


def limits(url: str, master_key: str, member: Member) -> tuple[int, int]:
    with Gateway(url, master_key) as gateway:
        info = gateway.get("/key/info", key=member.token).json()["info"]
    return info["rpm_limit"], info["max_parallel_requests"]


def admin(url: str, master_key: str) -> int:
    """Status of an admin call with this master key."""
    with Gateway(url, master_key) as gateway:
        return gateway.get("/key/list", page=1, size=10).status_code
