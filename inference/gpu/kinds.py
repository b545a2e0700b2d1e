"""The two kinds of engine and their commands: serving, checking a specification, fetching."""

import sys
from pathlib import Path

from inference.gpu import PROJECT
from inference.gpu.host import Host
from inference.gpu.spec import EngineSpec, SpecError

CHECK = PROJECT / "deploy/engine/check.py"
DOWNLOAD = Path(__file__).with_name("download.py")


def serve(host: Host, spec: EngineSpec, model_path: str) -> list[str]:
    words = spec.argv(model_path)
    if host.kind == "simulator":
        return [sys.executable, "-m", "inference.simulator", "serve", *words]
    program = "vllm" if host.driver == "compose" else f"{host.home}/bin/vllm"
    return [program, "serve", *words]


def check(host: Host) -> list[str]:
    """Reads {"argv", "model_path"} on stdin, answers a list of checks."""
    if host.kind == "simulator":
        return [sys.executable, "-m", "inference.simulator.check"]
    if host.driver == "compose":
        return [*_container(host, "--network=none", "--interactive"), host.image, str(CHECK)]
    return [f"{host.home}/bin/python", str(CHECK)]


def fetch(host: Host) -> list[str]:
    """Answers to REPO REVISION PROGRESS_FILE."""
    if host.kind == "simulator":
        return [sys.executable, "-m", "inference.simulator.weights"]
    if host.driver == "compose":
        return [*_container(host, "--env=HF_TOKEN"), host.image, str(DOWNLOAD)]
    return [f"{host.home}/bin/python", str(DOWNLOAD)]


def environment(host: Host, spec: EngineSpec | None = None) -> dict[str, str]:
    """For everything that belongs to an engine. Without secrets, the broker's address among them.

    Offline: an engine that lacks a file fails at once instead of fetching it.
    """
    found = {
        **host.inherited,
        "HF_HOME": str(host.hf_home),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CACHE_ROOT": str(host.state / "cache"),
        "PYTHONUNBUFFERED": "1",
    }
    if host.kind == "simulator":
        found |= {**host.simulator, "PYTHONPATH": str(PROJECT)}
    if spec is not None:
        found |= _for_gpus(host, spec) | dict(spec.environment)
    return found


def _for_gpus(host: Host, spec: EngineSpec) -> dict[str, str]:
    found = {
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, spec.gpus)),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    if host.kind == "simulator":
        found["SIM_MEMORY_MIB"] = str(spec.memory_mib)
    return found


def disk_mib(host: Host, weights_mib: int) -> int:
    """That weights of this size take here: stand-ins for them take next to nothing."""
    return 0 if host.kind == "simulator" else weights_mib


def must_fit(host: Host, spec: EngineSpec) -> None:
    """What only this host can refuse."""
    if spec.needs_simulator and host.kind != "simulator":
        raise SpecError("environment_refused", "SIM_ variables are for simulated engines only.")
    if not host.answers_on(spec.host):
        raise SpecError("host_refused", f"{spec.host} is not the address of {host.name}.")


def version(host: Host) -> str:
    """Read from the installed package's metadata: importing vllm takes many seconds."""
    if host.kind == "simulator":
        from inference.simulator.about import VERSION

        return VERSION
    if host.driver == "compose":
        return host.image.rpartition("/")[2][:60]
    found = sorted((host.home or Path()).glob("lib/python3*/site-packages/vllm-[0-9]*.dist-info"))
    return found[-1].name.removeprefix("vllm-").removesuffix(".dist-info") if found else ""


def is_installed(host: Host) -> bool:
    if host.kind == "simulator" or host.driver == "compose":
        return True
    return (host.home or Path()).joinpath("bin/vllm").is_file()


def _container(host: Host, *options: str) -> list[str]:
    """As the host's own user, with the weights' folder and these programs at their own paths."""
    folders = (f"--volume={host.hf_home}:{host.hf_home}", f"--volume={host.state}:{host.state}")
    programs = (f"--volume={path}:{path}:ro" for path in (CHECK, DOWNLOAD))
    return [
        "docker", "run", "--rm", "--pull=never", "--cap-drop=ALL",
        "--security-opt=no-new-privileges:true", "--entrypoint=python3", "--gpus=all",
        *folders, *programs, f"--env=HF_HOME={host.hf_home}", *options,
    ]  # fmt: skip
