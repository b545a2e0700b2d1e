"""Starts one engine, apart from the worker, and writes down how it ended. Standard library only.

    python -I keeper.py fork FOLDER COMMAND…   driver `process`
    python -I keeper.py exec FOLDER            in a systemd unit: becomes FOLDER/launch.json
    python -I keeper.py ended FOLDER           after it (ExecStopPost)

With `fork` it leads a session and process group of its own; the engine is its child; whatever the
engine leaves behind becomes its child too (PR_SET_CHILD_SUBREAPER), so that an orphaned EngineCore
stays recognisable even after it has overwritten its environment with a process title. It ends with
the last of them.

Files in FOLDER: `keeper.json` is the claim, made once and never removed: who finds it taken must
not start. `engine.json` names the engine's process, `exit.json` says how it ended (minus the
signal's number if by one). Output goes to `stdout.log` and `stderr.log`, not into pipes, so that
the engine outlives the worker.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Mapping

PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    mode, folder, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    if mode == "exec":
        return become(folder)
    if mode == "ended":
        return note_end(folder)
    return keep(folder, command)


def keep(folder: str, command: list[str]) -> int:
    if os.fork():
        return 0  # the worker waits for this process only
    os.setsid()
    os.umask(0o077)
    if not claim(folder):
        return 0
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # a handler ends with exec, SIG_IGN would not
    engine = os.fork()
    if engine == 0:
        run(folder, command)
    write(folder, "engine.json", {"pid": engine, "started": started(engine)})
    leave_terminal()
    wait_for_all(folder, engine)
    return 0


def claim(folder: str) -> bool:
    draft = write(folder, f".keeper.{os.getpid()}", {"pid": os.getpid(), "started": started()})
    try:
        os.link(draft, os.path.join(folder, "keeper.json"))
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    return True


def run(folder: str, command: list[str]) -> None:
    """In the engine's process. Never returns."""
    try:
        leave_terminal()
        for number, name in ((1, "stdout.log"), (2, "stderr.log")):
            path = os.path.join(folder, name)
            log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(log, number)
            os.close(log)
        turn_into(command, os.environ)
    except OSError as error:
        os.write(2, f"Cannot start {command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def leave_terminal() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)


def become(folder: str) -> int:
    """In a unit: systemd is the keeper. The key comes from the host's environment file."""
    with open(os.path.join(folder, "launch.json")) as file:
        launch = json.load(file)
    if not claim(folder):
        return 0
    key = os.environ["ENGINE_API_KEY"]
    turn_into(launch["command"], {**launch["environment"], "VLLM_API_KEY": key})
    return 127


def turn_into(command: list[str], environment: Mapping[str, str]) -> None:
    """Returns never; raises OSError where the program can't be run."""
    # The rule wants to see that no shell is bypassed by mistake: none is wanted. The words are
    # those that the host made of a validated EngineSpec, and become argv as they are.
    os.execvpe(command[0], command, environment)  # noqa: S606


def note_end(folder: str) -> int:
    """systemd tells how the main process ended in EXIT_CODE and EXIT_STATUS (systemd.exec(5))."""
    status = os.environ.get("EXIT_STATUS", "")
    if status.isdigit():
        code: int | None = int(status)
    else:
        code = -getattr(signal, f"SIG{status}", 0) or None
    write(folder, "exit.json", {"code": code, "at": time.time()})
    return 0


def wait_for_all(folder: str, engine: int) -> None:
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return
        if pid == engine:
            code = os.waitstatus_to_exitcode(status)
            write(folder, "exit.json", {"code": code, "at": time.time()})


def started(pid: int | str = "self") -> int:
    """Clock ticks since boot: with the pid, what tells a process from a later one."""
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[19])


def write(folder: str, name: str, content: dict[str, object]) -> str:
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as out:
        json.dump(content, out)
        out.flush()
        os.fsync(out.fileno())
    os.replace(path + ".new", path)
    return path


if __name__ == "__main__":
    sys.exit(main())
