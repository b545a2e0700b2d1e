"""Loaded before Django's settings: Postgres and Valkey for this run.

Where DATABASE_URL and REDIS_URL are set, those are used. Otherwise the local stack's own parts are
started on free ports with a state folder of their own, and ended with the run. Processes that share
a run (`-n 2`) have services of their own; the one that only hands out the tests has none.
"""

import atexit
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
HANDS_OUT = not WORKER and "-n" in sys.argv
PLACEHOLDERS = "NAN_TEST_PLACEHOLDERS"
"""Names of settings that the process which hands out tests made up, and its workers inherit."""


def own(folder: Path) -> Path:
    """This process's share of a folder for test runs."""
    return folder.with_name(f"{folder.name}-{WORKER}") if WORKER else folder


STATE = own(Path(os.environ.get("NAN_TEST_STATE", ROOT / ".nan" / "test-services")))
COMMAND = [sys.executable, "-m", "nan.local"]


def stack(*arguments: str) -> str:
    return subprocess.run(
        [*COMMAND, *arguments, "--state-dir", str(STATE)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout


def start() -> None:
    STATE.mkdir(parents=True, exist_ok=True)
    log = (STATE / "run.log").open("w")
    process = subprocess.Popen(
        [*COMMAND, "run", "--only", "postgres,valkey", "--free-ports", "--state-dir", str(STATE)],
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
    )
    atexit.register(stop, process)
    deadline = time.monotonic() + 60
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(
                f"Postgres and Valkey did not start:\n{(STATE / 'run.log').read_text()}"
            )
        time.sleep(0.1)
    for name, value in json.loads(stack("env", "--json")).items():
        os.environ.setdefault(name, value)


def ready() -> bool:
    return (STATE / "stack.json").exists() and json.loads((STATE / "stack.json").read_text()).get(
        "ready", False
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)


def hand_out() -> None:
    """Settings that load and connect to nothing."""
    made_up = json.loads(stack("env", "--json", "--placeholder"))
    os.environ[PLACEHOLDERS] = " ".join(name for name in made_up if name not in os.environ)
    for name, value in made_up.items():
        os.environ.setdefault(name, value)


for inherited in os.environ.pop(PLACEHOLDERS, "").split():
    del os.environ[inherited]
os.environ.setdefault("DJANGO_SECRET_KEY", "only-for-tests")
os.environ.setdefault("NAN_LOCAL", "1")
os.environ.setdefault("DB_POOL_SIZE", "16")  # for tests in which many act at once
if HANDS_OUT:
    hand_out()
elif not os.environ.get("DATABASE_URL"):
    start()
