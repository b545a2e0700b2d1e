"""A part for the supervisor's tests: notes what happens to it, and misbehaves on demand.

python child.py NAME FOLDER [--spawn] [--deaf] [--die] [--job]
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

name, folder = sys.argv[1], Path(sys.argv[2])
events, ready = folder / "events", folder / f"{name}.ready"


def note(text: str) -> None:
    with events.open("a") as out:
        out.write(f"{text} {name}\n")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def stop(*_: object) -> None:
    note("stop")
    if "--deaf" not in sys.argv:
        sys.exit(0)


signal.signal(signal.SIGTERM, stop)
note("start")
say(f"hello from {name}")
if "--die" in sys.argv:
    say("my disk is full")
    sys.exit(3)
if "--job" in sys.argv:
    say("password: correct-horse")
    sys.exit(0)
if "--spawn" in sys.argv:
    pause = [sys.executable, "-c", "import time; time.sleep(600)"]
    grandchild = subprocess.Popen(pause)
    (folder / f"{name}.grandchild").write_text(str(grandchild.pid))
ready.touch()
while True:
    time.sleep(0.05)
