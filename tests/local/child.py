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


def stop(*_: object) -> None:
    note("stop")
    if "--deaf" not in sys.argv:
        sys.exit(0)


signal.signal(signal.SIGTERM, stop)
note("start")
print(f"hello from {name}", flush=True)
if "--die" in sys.argv:
    print("my disk is full", flush=True)
    sys.exit(3)
if "--job" in sys.argv:
    print("password: correct-horse", flush=True)
    sys.exit(0)
if "--spawn" in sys.argv:
    pause = [sys.executable, "-c", "import time; time.sleep(600)"]
    grandchild = subprocess.Popen(pause)
    (folder / f"{name}.grandchild").write_text(str(grandchild.pid))
ready.touch()
while True:
    time.sleep(0.05)
