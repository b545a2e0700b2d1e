"""Where things lie in an installed gateway (`.nan/gateway`), and the environment they need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DROPPED = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "NODE_OPTIONS")


@dataclass(frozen=True)
class Home:
    """The folder that install.py fills; `root` is absolute because a venv can't be moved."""

    root: Path

    @property
    def venv(self) -> Path:
        return self.root / "venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def engine(self) -> Path:
        return self.root / "engine"

    @property
    def stamp(self) -> Path:
        return self.root / "installed.json"

    @property
    def site_packages(self) -> Path:
        """Found by looking, not by starting the venv's Python: that would run its .pth files."""
        found = sorted(self.venv.glob("lib/python3.*/site-packages"))
        if len(found) != 1:
            raise FileNotFoundError(
                f"No single site-packages in {self.venv}; install the gateway again."
            )
        return found[0]

    def environment(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """`inherited` (default: this process's) plus what Prisma and LiteLLM need to start here.

        Nothing in it lets either of them download: the engine is ours, and the schema engine, which
        only LiteLLM's own migration command would use, is replaced by a program that does nothing.
        """
        source = os.environ if inherited is None else inherited
        kept = {name: value for name, value in source.items() if name not in DROPPED}
        path = os.pathsep.join(
            [str(self.root / "bin"), str(self.venv / "bin"), kept.get("PATH", os.defpath)]
        )
        return kept | {
            "PATH": path,
            "PRISMA_BINARY_CACHE_DIR": str(self.engine),
            "PRISMA_HOME_DIR": str(self.root),
            "PRISMA_QUERY_ENGINE_BINARY": str(self.engine / "query-engine.js"),
            "PRISMA_SCHEMA_ENGINE_BINARY": "/bin/true",
            "CHECKPOINT_DISABLE": "1",
            "PRISMA_HIDE_UPDATE_MESSAGE": "1",
        }
