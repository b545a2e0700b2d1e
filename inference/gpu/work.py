"""The process that `inference.gpu.background` starts for a folder.

python -m inference.gpu.work preflight|fetch FOLDER
"""

import os
import sys
from pathlib import Path

from inference.gpu import fetching, preflight
from inference.gpu.background import finish, take_lock
from inference.gpu.host import Host
from inference.gpu.state import read_json

RUN = {"preflight": preflight.run, "fetch": fetching.run}


def main() -> int:
    work, folder = sys.argv[1], Path(sys.argv[2])
    os.umask(0o077)
    lock = take_lock(folder)
    if lock is None:
        return 0
    with lock:
        finish(folder, RUN[work](Host.from_environ(), folder, read_json(folder / "request.json")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
