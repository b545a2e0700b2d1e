"""Simulated GPU memory: a file `gpu<i>/<pid>` that holds the MiB taken, below SIM_GPU_DIR.

The driver of a real GPU takes memory back when the last process that holds it has ended, in
whatever way, SIGKILL included. A dead process removes no file, so a keeper does it: a shell that
waits for the end of a pipe whose other end all processes of the engine hold. It has a session and
an environment of its own: whoever ends or counts the engine's processes must not meet it.
"""

import os
import subprocess
from pathlib import Path

from inference.simulator.faults import ProcessFault
from inference.simulator.settings import Settings

_KEEPER = 'exec 3<&0; (cat <&3 >/dev/null; rm -f -- "$@") & '
"""In the background, so that it is nobody's child."""


def take(settings: Settings) -> int | None:
    """Until this process and all that are forked from it have ended. The pipe, if one is held."""
    files = _files(settings)
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f".{file.name}")  # a reader sees no half-written figure
        unfinished.write_text(str(settings.memory_mib))
        unfinished.rename(file)
    if not files or ProcessFault.KEEP_MEMORY in settings.faults:
        return None
    read_end, write_end = os.pipe()
    subprocess.run(  # noqa: S603  # our own script, and file names as its arguments
        ["/bin/sh", "-c", _KEEPER, "gpu-memory-keeper", *map(str, files)],
        stdin=read_end,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath},
        cwd="/",
        start_new_session=True,
        check=True,
    )
    os.close(read_end)
    return write_end


def shortage(settings: Settings) -> str | None:
    """vLLM's complaint where a GPU has less free than this engine takes."""
    folder, total = settings.gpu_folder, settings.gpu_total_mib
    if folder is None or total is None:
        return None
    for gpu in settings.gpus:
        free = total - used_mib(folder, gpu)
        if free < settings.memory_mib:
            return (
                f"ValueError: Free memory on device cuda:{gpu} ({free / 1024:.2f}/"
                f"{total / 1024:.2f} GiB) on startup is less than desired GPU memory utilization "
                f"({settings.memory_mib / total:.2f}, {settings.memory_mib / 1024:.2f} GiB). "
                "Decrease GPU memory utilization or reduce GPU memory used by other processes."
            )
    return None


def used_mib(folder: Path, gpu: int) -> int:
    files = [file for file in folder.glob(f"gpu{gpu}/*") if not file.name.startswith(".")]
    return sum(_mib(file) for file in files)


def _mib(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def _files(settings: Settings) -> list[Path]:
    if settings.gpu_folder is None or not settings.memory_mib:
        return []
    folder = settings.gpu_folder.absolute()
    return [folder / f"gpu{gpu}" / str(os.getpid()) for gpu in settings.gpus]
