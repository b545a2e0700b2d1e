"""An engine's last log lines and how far its start has come.

vLLM writes log lines to stdout, tracebacks and progress bars to stderr (with carriage returns).
Nothing here may carry a prompt: requests are not logged, and once an engine serves, only lines of
known form leave the host.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from inference.excerpt import excerpt

LINES = 20
LENGTH = 500
TAIL_BYTES = 64 * 1024
LARGEST = 32 * 1024 * 1024
KEPT = 1024 * 1024

_READY = re.compile(
    r"Application startup complete|Uvicorn running on|Starting (?:vLLM )?(?:API )?server"
)
# vLLM's and uvicorn's own lines begin so; the lines of a message that spans several do not.
_PREFIX = re.compile(
    r"(?:\([^)]*\) )?(?:INFO|WARNING|ERROR):? +(?:\d\d-\d\d \d\d:\d\d:\d\d )?(?:\[[^\]]+\] )?"
)
_KNOWN_FORM = re.compile(
    r"Engine \d+: Avg prompt throughput|GPU KV cache size|Maximum concurrency"
    r"|Waiting for application|Application (?:startup|shutdown) complete"
    r"|(?:Started|Finished) server"
    r"|Starting (?:vLLM )?(?:API )?server|Uvicorn running|Route: |Shutting down|Shut down"
    r"|Engine core proc \w+ died|EngineCore encountered|Loading \S+ as |Loading safetensors"
)
_SECRET = re.compile(r"\b(?:sk-|hf_)[A-Za-z0-9_-]{8,}|(?<=Bearer )\S+")
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
# Share of a start that each phase takes, from its first line on, in per cent. Measured on real
# starts the weights dominate; the figures only have to grow.
_PHASES: tuple[tuple[str, int, re.Pattern[str]], ...] = (
    ("loading weights", 5, re.compile(r"Loading (?:\w+ checkpoint|\S+ as )|Starting to load")),
    ("loading weights", 60, re.compile(r"Loading weights took|Model loading took")),
    ("compiling", 62, re.compile(r"torch\.compile|Dynamo bytecode|Compiling a graph")),
    ("sizing the KV cache", 75, re.compile(r"Available KV cache memory|[CG]PU KV cache size")),
    ("capturing graphs", 80, re.compile(r"Capturing CUDA graph")),
    ("starting to serve", 97, re.compile(r"Graph capturing finished|init engine .* took")),
    ("serving", 100, _READY),
)  # fmt: skip
_BAR = re.compile(
    r"(Loading \w+ checkpoint shards|Capturing CUDA graph\w*)\D*?(?:\([^)]*\))?\D*?(\d{1,3})%"
)
_BAR_SHARE = {"Loading": (5, 55), "Capturing": (80, 17)}
_KV = re.compile(r"(?:GPU|CPU) KV cache size: ([\d,]+) tokens")


@dataclass(frozen=True, kw_only=True)
class Start:
    """`percent` is an estimate; None before anything is known."""

    percent: int | None
    phase: str
    serving: bool
    kv_tokens: int | None


def read(folder: Path) -> list[str]:
    """Both logs' last lines: stdout's, then stderr's (they carry no common clock)."""
    return [*tail(folder / "stdout.log"), *tail(folder / "stderr.log")]


def tail(file: Path, size: int = TAIL_BYTES) -> list[str]:
    try:
        with file.open("rb") as log:
            start = max(0, os.fstat(log.fileno()).st_size - size)
            log.seek(start)
            text = log.read().decode(errors="replace")
    except OSError:
        return []
    lines = re.split(r"[\r\n]+", text)
    if start:
        lines = lines[1:]  # cut in the middle, where no secret can be recognised
    return [clean for line in lines if (clean := _CONTROL.sub("", line).strip())]


def shown(lines: list[str], *, serving: bool, secrets: tuple[str, ...] = ()) -> list[str]:
    """For a report. A progress bar's many states are one line."""
    kept: list[str] = []
    for line in lines:
        if serving and not _is_known(line):
            continue
        line = redacted(line, secrets)
        if kept and _bar_name(line) and _bar_name(kept[-1]) == _bar_name(line):
            kept.pop()
        kept.append(line)
    return kept[-LINES:]


def _is_known(line: str) -> bool:
    prefix = _PREFIX.match(line)
    return prefix is not None and _KNOWN_FORM.match(line, prefix.end()) is not None


def redacted(line: str, secrets: tuple[str, ...] = ()) -> str:
    for secret in secrets:
        line = line.replace(secret, "…")
    return excerpt(_SECRET.sub("…", line), LENGTH)


def progress(lines: list[str]) -> Start:
    percent: int | None = None
    phase, kv_tokens = "starting", None
    for line in lines:
        for name, share, pattern in _PHASES:
            if share >= (percent or 0) and pattern.search(line):
                phase, percent = name, share
        if bar := _BAR.search(line):
            begin, width = _BAR_SHARE[bar[1].split()[0]]
            percent = max(percent or 0, begin + min(int(bar[2]), 100) * width // 100)
        if size := _KV.search(line):
            kv_tokens = int(size[1].replace(",", ""))
    return Start(percent=percent, phase=phase, serving=phase == "serving", kv_tokens=kv_tokens)


def trim(folder: Path) -> None:
    """An engine runs for months. It appends, so its file can be cut under it."""
    for name in ("stdout.log", "stderr.log"):
        file = folder / name
        try:
            size = file.stat().st_size
            if size > LARGEST:
                with file.open("rb+") as log:
                    log.seek(size - KEPT)
                    (folder / f"{name}.1").write_bytes(log.read())
                    log.truncate(0)
        except OSError:
            continue


def _bar_name(line: str) -> str:
    found = _BAR.search(line)
    return found[1] if found else ""
