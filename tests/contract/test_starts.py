"""Starts that fail: exit status, the words to know them by, and what a check says beforehand."""

import socket
from pathlib import Path

import pytest

from tests.contract.contenders import CONTEXT, Contender

GOOD = {"flags": "", "parsers": "", "template": "", "context": ""}
TOOLS = "--enable-auto-tool-choice"

# flags, exit status, what it says, and the one check that says it beforehand with its code
CASES: dict[str, tuple[tuple[str, ...], int, str, str, str]] = {
    "unknown flag": (
        ("--swap-space", "4"),
        2,
        "unrecognized arguments: --swap-space",
        "flags",
        "flag_refused",
    ),
    "no JSON": (
        ("--speculative-config", "{x"),
        2,
        "argument --speculative-config/-sc: Value {x cannot be converted",
        "flags",
        "flag_value",
    ),
    "no parser named": (
        (TOOLS,),
        1,
        "--enable-auto-tool-choice requires --tool-call-parser",
        "flags",
        "flag_value",
    ),
    "unknown tool parser": (
        (TOOLS, "--tool-call-parser", "nope"),
        1,
        "invalid tool call parser: nope",
        "parsers",
        "parser_unknown",
    ),
    "unknown reasoning parser": (
        ("--reasoning-parser", "nope"),
        1,
        "Reasoning parser 'nope' not found",
        "parsers",
        "parser_unknown",
    ),
    "no template file": (
        ("--chat-template", "/nowhere/x.jinja"),
        1,
        "appears path-like, but doesn't exist",
        "template",
        "template_bad",
    ),
    "broken template": (
        ("--chat-template", "{% for m in messages %}{{ m.content }"),
        1,
        "jinja2.exceptions.TemplateSyntaxError",
        "template",
        "template_bad",
    ),
    "context too long": (
        ("--max-model-len", str(CONTEXT + 1)),
        1,
        f"User-specified max_model_len ({CONTEXT + 1}) is greater than the derived",
        "context",
        "context_too_long",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_start_and_check_agree(contender: Contender, folder: Path, name: str) -> None:
    words, status, text, check, code = CASES[name]
    with contender.start(*words, folder=folder) as running:
        assert running.process.wait(contender.start_seconds) == status
        assert text in running.output()
    found = contender.verdicts(*words)
    assert {name: code for name, code in found.items() if code} == {check: code}


@pytest.mark.parametrize("model", ["nan-local/missing", "/nowhere/model"])
def test_weights_missing(contender: Contender, folder: Path, model: str) -> None:
    with contender.start(model=model, folder=folder) as running:
        assert running.process.wait(contender.start_seconds) == 1
        said = (
            "HFValidationError: Repo id" if model[0] == "/" else "LocalEntryNotFoundError: Cannot"
        )
        assert said in running.output()
    assert contender.verdicts(model=model)["weights"] == "weights_missing"


def test_port_busy(contender: Contender, folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with contender.start(folder=folder, port=taken.getsockname()[1]) as running:
            assert running.process.wait(contender.start_seconds) == 1
            assert "Address already in use" in running.output()


def test_cache_too_small(contender: Contender, folder: Path) -> None:
    """No check can know it without loading: that is what the fit estimate is for."""
    words, little = contender.short_of_memory, {"SIM_KV_CACHE_TOKENS": "8192"}
    with contender.start(*words, folder=folder, environment=little) as running:
        assert running.process.wait(contender.start_seconds) == 1
        assert f"To serve at least one request with the model's max seq len ({CONTEXT})" in (
            running.output()
        )
        assert "estimated maximum model length is" in running.output()
    assert contender.verdicts(*words) == GOOD


def test_unknown_tool_parser_without_tools_is_no_matter(contender: Contender, folder: Path) -> None:
    words = ("--tool-call-parser", "nope", "--max-model-len", "2048")
    assert contender.verdicts(*words) == GOOD
    with contender.start(*words, folder=folder) as running:
        running.wait_healthy()
        assert running.chat("hi", max_tokens=2).status_code == 200
