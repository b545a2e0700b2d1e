"""The estimate beside what engines said at their start (logs.json), and the table of it.

python -m tests.inference.fit.accuracy    writes the table in docs/fleet.md
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.fit import Told, cache, estimate, figures_from_config

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[2] / "docs" / "fleet.md"
BEGIN, END = "<!-- fit: begin -->\n", "<!-- fit: end -->\n"
GIB, MIB = 2**30, 2**20
CONFIGS = json.loads((HERE / "configs.json").read_text())
LOGS = json.loads((HERE / "logs.json").read_text())
WORDS = {
    "tokens": "KV cache, tokens",
    "requests": "whole contexts at once",
    "needed": "GiB for one request",
    "available": "GiB left for the cache",
}


@dataclass(frozen=True, kw_only=True)
class Compared:
    what: str
    said: float
    ours: float

    @property
    def error(self) -> float:
        """Per cent."""
        return 100 * (self.ours / self.said - 1)


def compared(log: dict[str, Any]) -> list[Compared]:
    """What of a log can be foretold."""
    layout = cache.layout(figures_from_config(CONFIGS[log["model"]]), settings(log))
    if layout is None:
        raise ValueError(log["name"])
    available = int(log.get("available_gib", 0) * GIB)
    ours: dict[str, float] = {}
    if available and "kv_tokens" in log:
        ours["tokens"] = tokens(log, layout, available)
    if available:
        ours["requests"] = layout.concurrent(available)
    else:
        blocks = log.get("kv_tokens", 0) // layout.block * layout.groups
        ours["requests"] = blocks / layout.blocks_per_request
    ours["needed"] = layout.blocks_per_request * layout.bytes_per_block / GIB
    if "start" in log:
        ours["available"] = from_the_start(log)
    said = {
        "tokens": log.get("kv_tokens"),
        "requests": log.get("concurrency"),
        "needed": log.get("needed_gib"),
        "available": log.get("available_gib"),
    }
    return [
        Compared(what=what, said=said[what], ours=found)
        for what, found in ours.items()
        if said[what] is not None
    ]


def settings(log: dict[str, Any]) -> cache.Settings:
    return cache.Settings(
        context=log["context"],
        tensor_parallel=log["gpus"],
        element=1 if log.get("kv_dtype", "").startswith("fp8") else log.get("element", 2),
        block=log.get("block", cache.BLOCK),
        tokens_under_way=log.get("batched_tokens", 8192),
        prefix_caching=log.get("prefix_caching", True),
    )


def tokens(log: dict[str, Any], layout: cache.Layout, available: int) -> float:
    """Until 0.20 or so vLLM shared the blocks out among the groups and counted those of one."""
    if log.get("counting") == "blocks":
        return layout.blocks(available) // layout.groups * layout.block
    return int(layout.concurrent(available) * log["context"])


def from_the_start(log: dict[str, Any]) -> float:
    """GiB for the cache, from the GPU, the flags and the loaded weights alone."""
    start = log["start"]
    fit = estimate(
        figures_from_config(CONFIGS[log["model"]], int(start["weights_gib"] * GIB)),
        gpus_mib=[start["gpu_mib"]] * log["gpus"],
        gpu_name=start["gpu"],
        context=log["context"],
        told=Told(utilisation=start["utilisation"], batched_tokens=start["batched_tokens"]),
    )
    return fit.available_mib * MIB / GIB


def table() -> str:
    lines = [
        "| model | engine | what | it said | ours | error |",
        "|---|---|---|--:|--:|--:|",
    ]
    for log in LOGS:
        of = f"[{log['engine']}]({log['source']})" if "://" in log["source"] else log["engine"]
        for row in compared(log):
            digits = 0 if row.what == "tokens" else 2
            figures = f"{row.said:,.{digits}f} | {row.ours:,.{digits}f}"
            error = f"{round(row.error, 1) + 0.0:+.1f} %"
            lines.append(f"| {log['name']} | {of} | {WORDS[row.what]} | {figures} | {error} |")
    return "\n".join(lines) + "\n"


def written() -> str:
    """What stands in the document now."""
    return DOCUMENT.read_text().split(BEGIN)[1].split(END)[0]


def write() -> None:
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text.replace(BEGIN + written() + END, BEGIN + table() + END))


if __name__ == "__main__":
    write()
