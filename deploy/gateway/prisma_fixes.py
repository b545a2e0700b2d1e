"""Two changes to the generated Prisma client, applied once after `prisma generate`."""

from __future__ import annotations

from pathlib import Path

ENGINE_NAME = """

# LiteLLM up to 1.110.2 sets the engine under the name that prisma < 0.13 used:
# BerriAI/litellm#39114.
Prisma._Prisma__engine = property(
    lambda self: self._engine, lambda self, engine: setattr(self, '_engine', engine)
)
"""
TYPES = '''"""Stands in for 265,000 lines of TypedDicts (types.pyi), which serve annotations only.

Importing the real ones takes about ten seconds of every start.
"""
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith('__'):
        raise AttributeError(name)
    return Any
'''


def apply(site_packages: Path) -> None:
    """Safe to repeat: each change is skipped where it already stands."""
    package = site_packages / "prisma"
    client = package / "client.py"
    if ENGINE_NAME not in client.read_text():
        client.write_text(client.read_text() + ENGINE_NAME)
    types = package / "types.py"
    if types.read_text() != TYPES:
        types.replace(package / "types.pyi")
        types.write_text(TYPES)
