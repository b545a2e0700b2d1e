"""A process of the product's Python that stays, for a test that asks rows again and again."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.stack import ROOT

LOOP = """
import django, json, sys, traceback
django.setup()
from django.db import close_old_connections
for line in sys.stdin:
    names = {}
    try:
        exec(json.loads(line), names)
        print(json.dumps({"result": names.get("result")}), flush=True)
    except BaseException:
        print(json.dumps({"error": traceback.format_exc()}), flush=True)
    close_old_connections()
"""


@dataclass
class Shell:
    environment: Mapping[str, str] = field(repr=False)
    _process: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    def do(self, code: str) -> Any:
        """Runs `code`, which assigns `result`; a process that has ended is started anew."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", LOOP],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=dict(self.environment),
            )
        pipes = self._process
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        pipes.stdin.write(json.dumps(code) + "\n")
        pipes.stdin.flush()
        line = ""
        try:
            line = pipes.stdout.readline()
        finally:
            if not line:  # a test's time is up: this answer must not be taken for the next one's
                pipes.kill()
                pipes.wait()
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(20)
