"""The file from which HAProxy takes the state of its servers when it starts.

HAProxy applies it without a word, however old it is, and takes a server that was down for up until
its next check. So the file never says more than was true: what is about to leave service has left
it in the file already, and what is ready but down is written as draining, to be proven again.
"""

import re
from collections.abc import Mapping

from inference.pool_answers import DRAIN_BITS, MAINT_BITS, Admin, Key, Server, Snapshot, Worker

FORCED = {"maint": 0x01, "drain": 0x08, "ready": 0}
OURS = "# written for worker {pid} of {started}"
ORDER: tuple[Admin, ...] = ("ready", "drain", "maint")


def render(seen: Snapshot, lowered: Mapping[Key, Admin]) -> str:
    lines = [*seen.head, OURS.format(pid=seen.worker.pid, started=seen.worker.started)]
    columns = seen.head[1].removeprefix("# ").split()
    for key, server in sorted(seen.servers.items()):
        admin = max(_honest(server), lowered.get(key, "ready"), key=ORDER.index)
        lines.append(_row(dict(zip(columns, server.row, strict=True)), admin))
    return "\n".join(lines) + "\n"


def _honest(server: Server) -> Admin:
    if server.admin == "ready" and not server.up:
        return "drain"
    return server.admin


def _row(state: dict[str, str], admin: Admin) -> str:
    bits = int(state["srv_admin_state"]) & ~(MAINT_BITS | DRAIN_BITS) | FORCED[admin]
    # The time since the last change would make every file differ from the one before.
    state |= {"srv_admin_state": str(bits), "srv_time_since_last_change": "1"}
    return " ".join(state.values())


def worker_of(content: str) -> Worker | None:
    pattern = OURS.format(pid=r"(\d+)", started=r"(\d+)")
    found = re.search(f"^{pattern}$", content, re.MULTILINE)
    return Worker(pid=int(found[1]), started=int(found[2])) if found else None
