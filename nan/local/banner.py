"""What is printed when everything is ready, and the table of `status`."""

from collections.abc import Mapping

import psutil

from .config import Stack
from .state import PartRecord, StackRecord, is_alive


def closing(stack: Stack, private: Mapping[str, list[str]], *, seconds: float) -> str:
    """Where to click. `private`: what jobs said that may be shown here and nowhere else."""
    rows = [
        ("Site", stack.site_url),
        ("Gateway", f"{stack.api_url}/v1"),
        ("Mails", f"{stack.site_url}/dev/mail/"),
        ("Logs", str(stack.state_dir / "logs")),
    ]
    lines = [f"  {name:<9}{value}" for name, value in rows]
    admin = [line for line in private.get("first-admin", []) if line.strip()]
    if admin:
        lines += ["", "  First admin, shown this once:", *(f"    {line}" for line in admin)]
    rule = "-" * 72
    head = f"  Ready after {seconds:.0f} s. Ctrl-C stops everything."
    return "\n".join(["", rule, head, "", *lines, rule, ""])


def table(record: StackRecord) -> str:
    rows = [("PART", "STATE", "PID", "PORT", "MB", "RESTARTS", "LOG")]
    rows += [_row(part) for part in record.parts.values()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _row(part: PartRecord) -> tuple[str, str, str, str, str, str, str]:
    alive = is_alive(part.pid, part.create_time)
    state = part.state if alive or part.state in {"waiting", "done", "stopped"} else "gone"
    return (
        part.name,
        state,
        str(part.pid or ""),
        str(part.port or ""),
        f"{memory(part.pid) / 2**20:.0f}" if alive and part.pid else "",
        str(part.restarts),
        part.log or "",
    )


def memory(pid: int) -> int:
    """Bytes of the process and its children; pages that they share are counted once (PSS)."""
    total = 0
    try:
        leader = psutil.Process(pid)
        for process in (leader, *leader.children(recursive=True)):
            try:
                full = process.memory_full_info()
                total += getattr(full, "pss", 0) or full.rss
            except psutil.Error:
                continue
    except psutil.Error:
        return total
    return total
