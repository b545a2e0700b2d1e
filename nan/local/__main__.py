"""python -m nan.local run | status | stop | hold PART | release PART | env | clean-data"""

import argparse
import asyncio
import json
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import psutil

from . import banner, engines, environment, parts, ports, postgres, state
from .config import ROOT, Stack
from .edge import EdgeError
from .engines import EngineError
from .part import with_needs
from .secrets import SecretsError
from .supervisor import HOLDS, Supervisor

COMMANDS = ("run", "status", "stop", "hold", "release", "env", "clean-data")
# What `make setup` made; clean-data leaves it.
INSTALLED = ("venv", "gateway", "engine", "engine-models", "stamps")
LONGEST_STOP = 90  # seconds: the slowest chain of parts, and then some
# Each carries a sentence for the person at the terminal.
PROBLEMS = (
    state.AlreadyRunningError,
    SecretsError,
    EdgeError,
    EngineError,
    LookupError,
    postgres.PostgresError,
)


def main() -> int:
    options = _arguments()
    commands: Mapping[str, Callable[[argparse.Namespace], int]] = {
        "run": run,
        "status": status,
        "stop": stop,
        "hold": hold,
        "release": release,
        "env": env,
        "clean-data": clean_data,
    }
    try:
        return commands[options.command](options)
    except PROBLEMS as problem:
        print(problem, file=sys.stderr)
        return 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m nan.local", description=__doc__)
    parser.add_argument("command", choices=list(COMMANDS))
    parser.add_argument("part", nargs="?", help="for hold and release")
    parser.add_argument("--state-dir", type=Path, default=ROOT / ".nan", help="default: .nan")
    parser.add_argument("--free-ports", action="store_true", help="leave the usual ports alone")
    parser.add_argument("--only", help="these parts and what they need, e.g. postgres,valkey")
    parser.add_argument("--quiet", action="store_true", help="parts write to their logs only")
    parser.add_argument("--json", action="store_true", help="env as JSON")
    parser.add_argument(
        "--gateway", action="store_true", help="env with the gateway's master key, for reconcile"
    )
    parser.add_argument(
        "--placeholder", action="store_true", help="env for tools that only load the settings"
    )
    parser.add_argument("--yes", action="store_true", help="clean-data without asking")
    options = parser.parse_intermixed_args()
    options.state_dir = options.state_dir.resolve()
    return options


def run(options: argparse.Namespace) -> int:
    began = time.monotonic()
    state_dir: Path = options.state_dir
    lock = state.hold_lock(state_dir)
    with lock:
        shutil.rmtree(state_dir / HOLDS, ignore_errors=True)
        state.mark_as_starting(state_dir)
        if left := state.end_strays(state_dir):
            print(f"Ended what an earlier run left behind: {_summary(left)}", flush=True)
        engines.forget_memory(state_dir)
        chosen = ports.choose(file=state_dir / "ports.json", free=options.free_ports)
        if not options.free_ports and (moved := ports.unusual(chosen)):
            print(f"Not at the usual ports: {moved}", flush=True)
        stack = Stack.load(state_dir=state_dir, ports=chosen)
        wanted = parts.all_parts(stack)
        if options.only:
            wanted = with_needs(wanted, options.only.split(","))
        supervisor = Supervisor(
            wanted,
            state_dir=state_dir,
            record=_record(stack),
            quiet=options.quiet,
            on_ready=lambda private: banner.closing(
                stack, private, seconds=time.monotonic() - began
            ),
        )
        code = asyncio.run(supervisor.run())
        # Engines outlive the worker that started them; here they end with everything else.
        state.end_strays(state_dir)
        return code


def _summary(names: list[str]) -> str:
    counted = Counter(names).items()
    return ", ".join(name if count == 1 else f"{name} ({count})" for name, count in counted)


def _record(stack: Stack) -> state.StackRecord:
    return state.StackRecord(
        file=stack.state_dir / "stack.json",
        pid=os.getpid(),
        create_time=psutil.Process().create_time(),
        site=stack.site_url,
        api=stack.api_url,
        mails=f"{stack.site_url}/dev/mail/",
    )


def status(options: argparse.Namespace) -> int:
    record = state.read(options.state_dir)
    if record is None or not state.is_alive(record.pid, record.create_time):
        left = state.strays(options.state_dir)
        print(f"No stack runs in {options.state_dir}.")
        if left:
            print(f"{len(left)} processes of an earlier run are left; `stop` ends them.")
        return 1
    print(f"Site {record.site}   Gateway {record.api}/v1   Mails {record.mails}\n")
    print(banner.table(record))
    return 0 if record.ready else 3


def stop(options: argparse.Namespace) -> int:
    record = state.read(options.state_dir)
    if record is not None and state.is_alive(record.pid, record.create_time):
        supervisor = psutil.Process(record.pid)
        supervisor.terminate()
        deadline = time.monotonic() + LONGEST_STOP
        # Not psutil's wait: it waits for a zombie too, whose own parent is in no hurry.
        while state.is_alive(record.pid, record.create_time) and time.monotonic() < deadline:
            time.sleep(0.05)
        if state.is_alive(record.pid, record.create_time):
            print(f"The supervisor (pid {record.pid}) does not end; killing it.")
            supervisor.kill()
    names = state.end_strays(options.state_dir)
    print("Stopped." if not names else f"Stopped; also ended: {_summary(names)}")
    return 0


def hold(options: argparse.Namespace) -> int:
    """Stops a part and keeps it down, to see what the others make of it."""
    record = state.read(options.state_dir)
    if record is None or options.part not in record.parts:
        known = ", ".join(record.parts) if record else "nothing runs"
        print(f"No part is called {options.part}; there are: {known}", file=sys.stderr)
        return 2
    mark = options.state_dir / HOLDS / options.part
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    _wait_for(options, "held")
    print(f"{options.part} is down and stays down: `release {options.part}` starts it again.")
    return 0


def release(options: argparse.Namespace) -> int:
    (options.state_dir / HOLDS / str(options.part)).unlink(missing_ok=True)
    _wait_for(options, "ready")
    print(f"{options.part} is back.")
    return 0


def _wait_for(options: argparse.Namespace, wanted: str) -> None:
    """Until the supervisor has written the part's new state into stack.json."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        record = state.read(options.state_dir)
        if record is None or record.parts[options.part].state == wanted:
            return
        time.sleep(0.1)
    raise LookupError(f"{options.part} is not {wanted} after two minutes; see `status`.")


def env(options: argparse.Namespace) -> int:
    """For `eval "$(python -m nan.local env)"`: the app's settings; the gateway's key on request."""
    file = options.state_dir / "ports.json"
    if options.placeholder:
        stack = Stack.placeholder()
    elif file.exists():
        stack = Stack.load(state_dir=options.state_dir, ports=ports.remembered(file))
    else:
        print("Nothing has run yet: start the stack with `make run` first.", file=sys.stderr)
        return 1
    settings = environment.app_settings(stack)
    if options.gateway:
        settings |= environment.gateway_access(stack)
    if options.json:
        print(json.dumps(settings, indent=2))
    else:
        for name, value in sorted(settings.items()):
            print(f"export {name}={shlex.quote(value)}")
    return 0


def clean_data(options: argparse.Namespace) -> int:
    state_dir: Path = options.state_dir
    with state.hold_lock(state_dir):
        question = f"Forget all local data in {state_dir} (accounts, keys, mails, secrets)? [y/N] "
        if not options.yes and not _agreed(question):
            print("Nothing was changed.")
            return 0
        state.end_strays(state_dir)
        postgres.forget(state_dir)
        for entry in state_dir.iterdir():
            if entry.name not in INSTALLED:
                remove = partial(shutil.rmtree) if entry.is_dir() else Path.unlink
                remove(entry)
    print("The local data is gone; `make run` starts afresh.")
    return 0


def _agreed(question: str) -> bool:
    try:
        return input(question).strip().lower() in {"y", "yes"}
    except EOFError:
        return False


if __name__ == "__main__":
    sys.exit(main())
