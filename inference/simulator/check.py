"""Would this command line start? `deploy/engine/check.py` asks the same of real vLLM.

Reads `{"argv": [...], "model_path": "…"}` on stdin, prints a list of
`{"name": "flags|parsers|template|context", "ok": …, "code": "…", "detail": "…"}`. Where the
command line can't be read, that is the only verdict; where the model's files are missing, a verdict
`weights` stands in for those that need them.
"""

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inference.simulator import templates
from inference.simulator.flags import Options, parse
from inference.simulator.model import Model
from inference.simulator.settings import Settings
from inference.simulator.startup import Problem, problems, refused_flag

CHECKS = ("flags", "parsers", "template", "context")


def verdicts(argv: Sequence[str], model_path: str | None) -> list[dict[str, Any]]:
    options, refusal = _parse(argv)
    if options is None:
        return [_verdict("flags", code=_code(refusal), detail=refusal)]
    model = Model.of(options, os.environ)
    if model_path:
        model = model.at(Path(model_path))
    settings = Settings.from_environ(os.environ, model.names, context=model.context)
    if text := refused_flag(argv, settings):
        return [_verdict("flags", code="flag_refused", detail=text)]
    found = list(problems(options, settings, model))
    if text := templates.broken(options, settings, model):
        found.append(Problem(check="template", code="template_bad", text=text))
    if any(problem.check == "weights" for problem in found):
        return [_first(name, found) for name in ("flags", "parsers", "weights")]
    return [_first(name, found) for name in CHECKS]


def _parse(argv: Sequence[str]) -> tuple[Options | None, str]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            return parse(argv), ""
    except SystemExit:
        lines = said.getvalue().strip().splitlines()
        return None, lines[-1] if lines else "The command line was refused."


def _code(refusal: str) -> str:
    return "flag_refused" if "unrecognized arguments" in refusal else "flag_value"


def _first(name: str, found: Sequence[Problem]) -> dict[str, Any]:
    for problem in found:
        if problem.check == name:
            return _verdict(name, code=problem.code, detail=problem.text)
    return _verdict(name)


def _verdict(name: str, *, code: str = "", detail: str = "") -> dict[str, Any]:
    return {"name": name, "ok": not code, "code": code, "detail": detail}


def main() -> int:
    asked = json.load(sys.stdin)
    print(json.dumps(verdicts(asked["argv"], asked.get("model_path"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
