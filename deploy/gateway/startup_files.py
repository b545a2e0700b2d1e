"""Files that Python executes by itself at every start, and that must not be in the gateway's venv.

Two malicious releases of LiteLLM (1.82.7 and 1.82.8) stole credentials by a `.pth` file, which runs
whenever any Python of that venv starts, even without importing LiteLLM. Nothing that the gateway
needs ships such a file, so any is refused, except the known ones of the tools that create virtual
environments, and those only with their known content.
"""

from __future__ import annotations

from pathlib import Path

ALLOWED = {"_virtualenv.pth": "import _virtualenv"}
CUSTOMIZE = ("sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize")


def unexpected(site_packages: Path) -> list[Path]:
    """The files in `site_packages` that would run at start and are not on the allow-list."""
    paths = [path for path in sorted(site_packages.glob("*.pth")) if not _allowed(path)]
    return paths + [path for name in CUSTOMIZE if (path := site_packages / name).exists()]


def _allowed(path: Path) -> bool:
    expected = ALLOWED.get(path.name)
    return expected is not None and path.read_text(errors="replace").strip() == expected


def complaint(paths: list[Path]) -> str:
    """What to tell the person in front of it; never the content, which may be hostile."""
    listed = "\n".join(f"  {path}" for path in paths)
    return (
        "Python would execute these files at every start, and nothing known installs them:\n"
        f"{listed}\n"
        "This is how malicious LiteLLM releases took credentials. Nothing was started.\n"
        "Look at the files without running this venv; if they are hostile, change every secret\n"
        "that was in its environment. Then delete the whole gateway folder and install it again."
    )
