"""Asks the verbs of `rows` and `voters` in a process with Django and a stack's settings."""

import json
import subprocess
import sys
from importlib import import_module
from typing import Any

import django

from tests.stack import ROOT, Stack, bare_environment


def ask(stack: Stack, module: str, verb: str, *numbers: int) -> Any:
    """The verb's answer; SystemExit with the end of its complaint if it has none."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.bench.inside", module, verb, *map(str, numbers)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**bare_environment(), **stack.env},
    )
    if run.returncode:
        raise SystemExit(f"{module} {verb}: {run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


if __name__ == "__main__":
    name, asked, *figures = sys.argv[1:]
    django.setup()
    verbs = import_module(f"tests.bench.{name}").VERBS
    print(json.dumps(verbs[asked](*map(int, figures))))
