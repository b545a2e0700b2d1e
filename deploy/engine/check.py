"""Would this command line start? Asked of vLLM itself, in its environment, without loading weights.

    echo '{"argv": ["MODEL", "--max-model-len", "32768"], "model_path": "/…/snapshots/…"}' \\
        | HOME/bin/python deploy/engine/check.py

`argv` is what would follow `vllm serve`. Prints a list of
`{"name": "flags|parsers|template|context", "ok": …, "code": "…", "detail": "…"}`. Where the command
line can't be read, that is the only verdict; where the model's files are missing, a verdict
`weights` stands in for those that need them. Takes as long as importing vLLM does, 10 s and more.
"""

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

LONGEST_DETAIL = 600
CODES = (
    ("is greater than the derived", "context", "context_too_long"),
    ("SpeculativeConfig", "flags", "speculative_bad"),
    ("LocalEntryNotFoundError", "weights", "weights_missing"),
    ("Repo id must be in the form", "weights", "weights_missing"),
    ("requires --tool-call-parser", "flags", "flag_value"),
    ("easoning parser", "parsers", "parser_unknown"),
    ("tool parser", "parsers", "parser_unknown"),
    ("Tool parser", "parsers", "parser_unknown"),
    ("chat template", "template", "template_bad"),
)
"""Words of an exception, the check that they fail, the code. The first match counts."""
TALK = [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "hello again"},
]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}

Verdict = dict[str, Any]


def verdicts(argv: Sequence[str], model_path: str | None) -> list[Verdict]:
    try:
        command, arguments = parse(argv)
    except Refused as refusal:
        return [refusal.verdict()]
    if model_path:
        arguments.model, arguments.revision = model_path, None
    found = [*_guarded("flags", command.validate, arguments)]
    found += _guarded("parsers", check_parsers, arguments)
    found += _guarded("context", check_configuration, arguments)
    if any(verdict["name"] == "weights" for verdict in found):
        return merged(found)
    return merged([*found, *_guarded("template", check_template, arguments)])


class Refused(Exception):
    """The command line, in the engine's own words."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code, self.detail = code, detail

    def verdict(self) -> Verdict:
        return _verdict("flags", code=self.code, detail=self.detail)


def parse(argv: Sequence[str]):
    """With the parser of `vllm serve`; what it only says to people is caught."""
    from vllm.entrypoints.cli.serve import cmd_init
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser(prog="vllm")
    subparsers = parser.add_subparsers(required=False, dest="subparser")
    [command] = [each for each in cmd_init() if each.name == "serve"]
    command.subparser_init(subparsers)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            arguments = parser.parse_args(["serve", *argv])
    except SystemExit:
        text = (said.getvalue().strip().splitlines() or ["The command line was refused."])[-1]
        known = "unrecognized arguments" not in text
        raise Refused("flag_value" if known else "flag_refused", text) from None
    if arguments.model_tag is not None:
        arguments.model = arguments.model_tag
    return command, arguments


def check_parsers(arguments) -> None:
    """As a start does: the tool parser counts only where tools are on."""
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    if arguments.enable_auto_tool_choice and arguments.tool_call_parser:
        ToolParserManager.get_tool_parser(arguments.tool_call_parser)
    if name := getattr(arguments, "reasoning_parser", None):
        ReasoningParserManager.get_reasoning_parser(name)


def check_template(arguments) -> None:
    """Rendered by the tokenizer as for a first question, a later one, and one with tools."""
    from transformers import AutoTokenizer

    if arguments.runner == "pooling" or arguments.tokenizer_mode not in ("auto", "hf", "slow"):
        return
    given = _given_template(arguments)
    tokenizer = AutoTokenizer.from_pretrained(
        arguments.tokenizer or arguments.model,
        revision=arguments.revision,
        trust_remote_code=arguments.trust_remote_code,
        local_files_only=True,
    )
    if given is None and not tokenizer.chat_template:
        return  # an embedding model, or one for which vLLM brings a template
    asks: list[dict[str, Any]] = [{"conversation": TALK[:1]}, {"conversation": TALK}]
    if arguments.enable_auto_tool_choice:
        asks.append({"conversation": TALK[:1], "tools": [TOOL]})
    more = getattr(arguments, "default_chat_template_kwargs", None) or {}
    for ask in asks:
        tokenizer.apply_chat_template(
            chat_template=given, add_generation_prompt=True, tokenize=False, **ask, **more
        )


def _given_template(arguments) -> str | None:
    from vllm.renderers.chat_utils import load_chat_template

    return load_chat_template(arguments.chat_template)


def check_configuration(arguments) -> None:
    """The whole configuration, as a start makes it: length, quantization, draft model, devices."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext

    engine = AsyncEngineArgs.from_cli_args(arguments)
    engine.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)


def _guarded(name: str, check, arguments) -> list[Verdict]:
    """One verdict; the exception's own words say which check it fails, where they are known."""
    try:
        check(arguments)
    # vLLM, transformers and Jinja raise anything: pydantic's errors, KeyError, TypeError, OSError,
    # RuntimeError, each library's own. Whatever it is would end a start, so it is the verdict.
    except Exception as error:  # noqa: BLE001
        text = f"{type(error).__name__}: {_sentence(error)}"
        for words, check_name, code in CODES:
            if words in text:
                return [_verdict(check_name, code=code, detail=text)]
        code = "template_bad" if name == "template" else "flag_value"
        return [_verdict(name if name == "template" else "flags", code=code, detail=text)]
    return [_verdict(name)]


def _sentence(error: Exception) -> str:
    """Of a validation error of many lines, what is wrong and where."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines if "errors.pydantic.dev" not in line)


def _verdict(name: str, *, code: str = "", detail: str = "") -> Verdict:
    return {"name": name, "ok": not code, "code": code, "detail": detail[:LONGEST_DETAIL]}


def main() -> int:
    """vLLM logs to stdout: what is to be read has that for itself."""
    asked = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(verdicts(asked["argv"], asked.get("model_path"))), file=answers)
    answers.flush()
    os._exit(0)  # without waiting for whatever threads the imports began


def merged(found: Sequence[Verdict]) -> list[Verdict]:
    """One verdict for each name; a failure counts more than a success."""
    best: dict[str, Verdict] = {}
    for verdict in found:
        before = best.get(verdict["name"])
        if before is None or (before["ok"] and not verdict["ok"]):
            best[verdict["name"]] = verdict
    return list(best.values())


if __name__ == "__main__":
    main()
