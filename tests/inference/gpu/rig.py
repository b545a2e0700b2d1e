"""A GPU host of its own in a temporary folder, driven as its tasks drive it."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inference.gpu import processes, report
from inference.gpu.drivers import Driver, choose
from inference.gpu.engines import Engines
from inference.gpu.host import Host
from inference.gpu.spec import EngineSpec
from inference.gpu.state import HostState, read_identity
from inference.simulator import hub
from inference.simulator.weights import _CONFIG, _files
from tests.ports import free_port

KEY = "sk-the-key-of-the-engines-0123456789"
MODEL, REVISION = "example/Small-1B", "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Rig:
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "NAN_ROLE": "gpu",
            "NAN_GPU_NAME": "rig",
            "NAN_GPU_ADDRESS": "127.0.0.1",
            "NAN_GPU_STATE": str(self.folder / "state"),
            "NAN_GPU_DRIVER": "process",
            "NAN_GPU_DEVICES": "simulated:2x24576",
            "NAN_ENGINE_KIND": "simulator",
            "ENGINE_API_KEY": KEY,
            "HF_HOME": str(self.folder / "hf"),
            **self.environ,
        }

    @property
    def host(self) -> Host:
        return Host.from_environ(self.environ)

    @property
    def state(self) -> HostState:
        return HostState(self.host.state)

    @property
    def driver(self) -> Driver:
        return choose(self.host)

    @property
    def engines(self) -> Engines:
        return Engines(self.host, self.state, self.driver)

    def report(self) -> dict[str, Any]:
        with self.state.locked():
            return report.build(self.host, self.state, self.engines)

    def start(self, spec: EngineSpec) -> dict[str, Any]:
        with self.state.locked():
            self.engines.start(spec.to_json())
        return self.report()["engines"][spec.instance]

    def stop(self, instance: str, seconds: int = 30) -> dict[str, Any]:
        with self.state.locked():
            self.engines.stop(instance, seconds)
        return self.report()["engines"][instance]

    def engine(self, instance: str) -> dict[str, Any]:
        found: dict[str, Any] = self.report()["engines"][instance]
        return found

    def until(
        self, instance: str, good: Callable[[dict[str, Any]], bool], seconds: float = 20
    ) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while not good(found := self.engine(instance)):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found

    def until_exited(self, instance: str, seconds: float = 20) -> dict[str, Any]:
        return self.until(
            instance, lambda found: found["state"] == "exited" and not found["left"], seconds
        )

    def until_serving(self, instance: str, seconds: float = 20) -> dict[str, Any]:
        return self.until(instance, lambda found: found["phase"] == "serving", seconds)

    def family(self, instance: str) -> set[int]:
        """Every living process of it, by the kernel's account of marker and session."""
        marker = f"{processes.MARKER}={self.state.marker(instance)}".encode()
        found = set()
        for pid in processes.everything():
            try:
                if marker in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found.add(pid)
            except OSError:
                continue
        return found

    def pid(self, instance: str) -> int:
        identity = read_identity(self.state.engine(instance) / "engine.json")
        assert identity
        return identity[0]

    def add_weights(self, model: str = MODEL, revision: str = REVISION) -> Path:
        made = self.folder / "made"
        made.mkdir(exist_ok=True)
        for name, content in _files(_CONFIG).items():
            (made / name).write_bytes(content)
        return hub.place(self.folder / "hf" / "hub", model, revision, made)

    def script(self, body: str) -> None:
        """From now on engines are this Python program instead of vLLM."""
        home = self.folder / "home"
        (home / "bin").mkdir(parents=True, exist_ok=True)
        program = home / "bin" / "vllm"
        program.write_text(f"#!{sys.executable} -I\n{body}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.environ |= {"NAN_ENGINE_KIND": "vllm", "NAN_ENGINE_HOME": str(home)}

    def end_everything(self) -> None:
        for record in self.state.records():
            with self.state.locked():
                self.engines.stop(record.instance, 0)
        for record in self.state.records():
            self.until_exited(record.instance)


def spec(**changes: Any) -> EngineSpec:
    plain = EngineSpec(
        instance="r1-g1",
        model=MODEL,
        revision=REVISION,
        names=("small", "nan"),
        host="127.0.0.1",
        port=free_port(),
        gpus=(0,),
        flags={"max-model-len": 8192},
        environment={},
        shutdown_timeout=5,
        memory_mib=1000,
        disk_mib=0,
    )
    return replace(plain, **changes)


def running(folder: Path, **environ: str) -> Iterator[Rig]:
    rig = Rig(folder, environ)
    rig.add_weights()
    try:
        yield rig
    finally:
        if rig.environ["NAN_GPU_DRIVER"] == "process":
            rig.end_everything()
