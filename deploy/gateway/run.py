"""Start the gateway in the foreground: LiteLLM takes this process over, so its signals are its own.

    python deploy/gateway/run.py --home .nan/gateway --config FILE --port 4000 [--first-instance]

Needs DATABASE_URL, REDIS_HOST, REDIS_PORT, REDIS_PASSWORD (may be empty), LITELLM_MASTER_KEY and
LITELLM_SALT_KEY. Ready when GET /health/readiness contains "connected"; alive while
/health/liveliness answers; never ask /health, which calls the models. Stop with SIGTERM and leave
it 30 s: it finishes open calls and gives their slots back.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import credentials
import startup_files
from home import Home

NEEDED = ("DATABASE_URL", "REDIS_HOST", "REDIS_PORT")
QUIET = {
    # Lines at ERROR repeat what an engine answered, and that may repeat a prompt.
    "LITELLM_LOG": "CRITICAL",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the import waits for a download
    "LITELLM_TELEMETRY": "False",
    "DISABLE_SCHEMA_UPDATE": "true",  # migrate.py has done it
    "DISABLE_ADMIN_UI": "True",
    "NO_DOCS": "True",
    "NO_REDOC": "True",
    "NO_OPENAPI": "True",
}
POSTGRES_SECONDS = 60
CALLBACKS = Path(__file__).resolve().parent / "callbacks"


def main() -> int:
    options = _options()
    home = Home(options.home.resolve())
    if problem := _problem(home, options.config):
        print(f"gateway: {problem}", file=sys.stderr)
        return 1
    if Path(sys.prefix).resolve() != home.venv.resolve():
        # The next step needs the gateway's own packages.
        os.execve(home.python, [str(home.python), *sys.argv], home.environment())
    if not _prepare(options.first_instance):
        return 1
    _become_litellm(home, options)
    return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--home", type=Path, required=True, help="what install.py filled")
    parser.add_argument("--config", type=Path, required=True, help="what config.py wrote")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1", help="loopback or VPN address, never public")
    parser.add_argument(
        "--first-instance",
        action="store_true",
        help="no other instance runs: give back parallel slots that a killed one left taken",
    )
    return parser.parse_args()


def _problem(home: Home, config: Path) -> str | None:
    if found := credentials.problems(os.environ):
        return credentials.complaint(found)
    if missing := [name for name in NEEDED if not os.environ.get(name)]:
        return f"Not started: {', '.join(missing)} must be set."
    if not home.stamp.exists():
        command = f"python deploy/gateway/install.py --target {home.root}"
        return f"{home.root} is not installed. Run: {command}"
    if not config.exists():
        return f"{config} does not exist. Write it with deploy/gateway/config.py."
    if paths := startup_files.unexpected(home.site_packages):
        return startup_files.complaint(paths)
    return None


def _prepare(first_instance: bool) -> bool:
    """Runs in the gateway's venv. What the drivers say names hosts and ports, never a password."""
    import migrate
    import psycopg
    import redis

    try:
        url = os.environ["DATABASE_URL"]
        with migrate.connect(url, wait_seconds=POSTGRES_SECONDS) as connection:
            applied = migrate.apply(connection, migrate.migrations())
        cleared = _release_slots() if first_instance else 0
    except (psycopg.Error, redis.RedisError, OSError, ValueError) as error:
        print(f"gateway: not started: {error}".strip(), file=sys.stderr)
        return False
    print(f"gateway: {applied} database migrations applied", flush=True)
    if cleared:
        print(f"gateway: {cleared} parallel counters of an earlier run cleared", flush=True)
    return True


def _release_slots() -> int:
    import redis
    import slots

    with redis.Redis(
        host=os.environ["REDIS_HOST"],
        port=int(os.environ["REDIS_PORT"]),
        password=os.environ.get("REDIS_PASSWORD") or None,
        socket_timeout=5,
    ) as client:
        return slots.release(client)


def _become_litellm(home: Home, options: argparse.Namespace) -> None:
    environment = home.environment() | QUIET | {"PYTHONPATH": str(CALLBACKS)}
    if not environment.get("REDIS_PASSWORD"):
        environment.pop("REDIS_PASSWORD", None)
    command = [str(home.python), str(CALLBACKS / "nan_serve.py")]
    place = [
        "--config",
        str(options.config.resolve()),
        "--host",
        options.host,
        "--port",
        str(options.port),
    ]
    sys.stdout.flush()
    os.execve(home.python, [*command, *place], environment)


if __name__ == "__main__":
    sys.exit(main())
