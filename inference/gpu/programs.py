"""The programs that this host calls: each with an environment of its own and, where somebody waits
for it, a deadline. A name without a folder is looked up in that environment's PATH.

Raises OSError where there is no such program, subprocess.TimeoutExpired after killing a late one.
"""

# ruff: noqa: S603
# The rule asks whether a command could be somebody's input. Here every one is a list of words for
# execve, never a shell's line, made of constants, the host's own settings, and the fields of a
# validated EngineSpec or fetch. Nothing else below inference/gpu starts a process.

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


def answer(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    seconds: float,
    question: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Its exit code and all that it printed. `question` goes to its standard input."""
    return subprocess.run(
        _located(command, environment),
        env=environment,
        input=question,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )


def carry_out(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    seconds: float | None,
    folder: Path | None = None,
    output: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Its exit code. It prints where this process does, or to `output`; a program that leaves
    others behind must not be given a pipe, which they would hold open."""
    return subprocess.run(
        _located(command, environment),
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        timeout=seconds,
        check=False,
    )


def leave_running(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, output: IO[bytes]
) -> None:
    """In a session of its own, so that it outlives this process."""
    subprocess.Popen(
        _located(command, environment),
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _located(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    name, *words = command
    if os.sep in name:
        return [name, *words]
    path = shutil.which(name, path=environment.get("PATH", os.defpath))
    if path is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return [path, *words]
