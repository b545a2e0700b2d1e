"""A GPU host: told what to run by tasks on its own queue, it tells back what runs.

No database here, and no command line from outside: a validated `spec.EngineSpec` becomes argv.
"""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
"""The checkout that this host runs from."""
