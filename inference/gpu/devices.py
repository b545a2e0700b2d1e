"""GPUs of this host and who holds their memory.

Real ones are read from nvidia-smi, in a process of its own with a deadline: it comes with every
driver, and a driver that hangs holds up no task. Simulated ones are files, see
`inference.simulator.memory`.
"""

import csv
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.gpu import programs
from inference.gpu.host import Host

SECONDS = 8
Held = dict[int, int]


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """`held`: process → MiB, as far as the driver tells; `used_mib` is the whole."""

    index: int
    name: str
    total_mib: int
    used_mib: int
    held: Held

    def used_by(self, pids: Collection[int]) -> int:
        return sum(mib for pid, mib in self.held.items() if pid in pids)

    def to_json(self, own: Collection[int]) -> dict[str, Any]:
        return {
            "index": self.index,
            "name": self.name,
            "total_mib": self.total_mib,
            "used_mib": self.used_mib,
            "foreign_mib": sum(mib for pid, mib in self.held.items() if pid not in own),
        }


class DevicesUnavailable(Exception):
    """The driver does not answer; the message says how."""


def read(host: Host) -> list[Gpu]:
    if host.devices == "none":
        return []
    if host.devices == "nvidia":
        return _nvidia(host)
    count, _, mib = host.devices.removeprefix("simulated:").partition("x")
    folder = Path(host.simulator["SIM_GPU_DIR"])
    return [_simulated(folder, index, int(mib)) for index in range(int(count))]


def _simulated(folder: Path, index: int, total: int) -> Gpu:
    held: Held = {}
    for file in (folder / f"gpu{index}").glob("[0-9]*"):
        try:
            held[int(file.name)] = int(file.read_text())
        except (OSError, ValueError):
            continue
    used = sum(held.values())
    return Gpu(index=index, name="Simulated GPU", total_mib=total, used_mib=used, held=held)


def _nvidia(host: Host) -> list[Gpu]:
    """https://docs.nvidia.com/deploy/nvidia-smi/index.html

    Inside containers and with MIG the driver names no process or no figure: then nothing is held
    by anybody, and `used_mib` alone decides.
    """
    gpus = _query(host, "--query-gpu=index,uuid,name,memory.total,memory.used")
    apps = _query(host, "--query-compute-apps=gpu_uuid,pid,used_memory")
    held: dict[str, Held] = {}
    for row in apps:
        if len(row) == 3 and row[1].isdigit() and row[2].isdigit():
            held.setdefault(row[0], {})[int(row[1])] = int(row[2])
    try:
        return [
            Gpu(index=int(index), name=name, total_mib=int(total), used_mib=int(used),
                held=held.get(uuid, {}))
            for index, uuid, name, total, used in gpus
        ]  # fmt: skip
    except ValueError:
        raise DevicesUnavailable("nvidia-smi answers something else than figures") from None


def _query(host: Host, query: str) -> list[list[str]]:
    try:
        found = programs.answer(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            environment=host.inherited,
            seconds=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DevicesUnavailable(f"nvidia-smi: {type(error).__name__}") from None
    if found.returncode:
        raise DevicesUnavailable(f"nvidia-smi: exit {found.returncode}")
    return [[cell.strip() for cell in row] for row in csv.reader(found.stdout.splitlines())]
