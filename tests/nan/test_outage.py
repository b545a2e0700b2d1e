"""A database that can't be had is a 503 that says *try again*, also before any view runs (P6)."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import django
from django.conf import settings
plain = "django.contrib.staticfiles.storage.StaticFilesStorage"
settings.STORAGES["staticfiles"] = {{"BACKEND": plain}}  # no collectstatic in tests
django.setup()
from django.test import Client
client = Client(raise_request_exception=False, SERVER_NAME="127.0.0.1")
if {session!r}:
    client.cookies["session"] = {session!r}
answer = client.get({path!r})
head = [answer.get(name) for name in ("Retry-After", "Cache-Control", "Content-Type")]
print(answer.status_code, *head)
print(answer.content.decode())
"""


def environment_without_database() -> dict[str, str]:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "nan.settings",
        "DATABASE_URL": f"postgresql://nan:nan@127.0.0.1:{port}/nan",
        "LOG_LEVEL": "CRITICAL",
    }


def ask_without_database(path: str, session: str = "x" * 32) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", ASK.format(path=path, session=session)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment_without_database(),
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split("\n", 1)


@pytest.mark.parametrize("path", ["/", "/readyz", "/accounts/login/"])
def test_page_says_try_again(path: str) -> None:
    head, body = ask_without_database(path)
    assert head == "503 10 no-store text/html; charset=utf-8"
    assert body.count("<h1") == 1


def test_liveness_needs_no_database() -> None:
    """A probe carries no session; an outage elsewhere must not restart a healthy process."""
    head, body = ask_without_database("/healthz", session="")
    assert (head.split()[0], body.strip()) == ("200", "ok")
