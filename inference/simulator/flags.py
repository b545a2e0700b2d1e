"""`vllm serve`'s command line. `vllm_flags.txt` lists every flag of 0.32.0; most change nothing
here, but an unknown one ends the process as vLLM ends: exit 2, `unrecognized arguments`. One key
of a JSON flag (`--speculative-config.method=x`) is taken and ignored."""

import argparse
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FLAGS = Path(__file__).with_name("vllm_flags.txt")
_JSON_DOTTED = re.compile(r"--[a-z-]+-config\.[\w.]+=")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The flags that change what the simulator does."""

    model: str
    revision: str | None
    runner: str
    """`generate`, `pooling`, or `auto`: by the model's architecture."""
    served_names: tuple[str, ...]
    """Accepted names; answers and metric labels carry the first."""
    host: str
    port: int
    uds: str | None
    api_keys: tuple[str, ...]
    max_model_len: int | None
    max_num_seqs: int
    max_queued: int | None
    prefix_caching: bool
    shutdown_timeout: int
    """Seconds that streams get to finish after SIGTERM; 0 cuts them."""
    auto_tools: bool
    tool_parser: str | None
    reasoning_parser: str | None
    chat_template: str | None
    """A file, or the template itself."""
    template_kwargs: dict[str, Any]
    drafts: int
    """Tokens that speculative decoding proposes at a time; 0: not configured."""


def parse(argv: Sequence[str]) -> Options:
    """Exits with 2 and vLLM's words on stderr when the command line is wrong."""
    parser = _parser()
    words = [_dashed(word) for word in argv]
    if words[:1] == ["serve"]:
        words = words[1:]
    found = parser.parse_args([word for word in words if not _JSON_DOTTED.match(word)])
    model = found.model_tag or found.model or "simulated"
    return Options(
        model=model,
        revision=found.revision,
        runner=found.runner or "auto",
        served_names=tuple(found.served_model_name or [model]),
        host=found.host or "127.0.0.1",  # vLLM listens everywhere; a stand-in has no business there
        port=8000 if found.port is None else found.port,
        uds=found.uds,
        api_keys=tuple(found.api_key or filter(None, [os.environ.get("VLLM_API_KEY")])),
        max_model_len=found.max_model_len,
        max_num_seqs=found.max_num_seqs or 256,
        max_queued=found.max_num_queued_reqs,
        prefix_caching=found.enable_prefix_caching is not False,
        shutdown_timeout=found.shutdown_timeout or 0,
        auto_tools=bool(found.enable_auto_tool_choice),
        tool_parser=found.tool_call_parser,
        reasoning_parser=found.reasoning_parser,
        chat_template=found.chat_template,
        template_kwargs=found.default_chat_template_kwargs or {},
        drafts=_drafts(found.speculative_config),
    )


def _drafts(config: Any) -> int:
    return int(config.get("num_speculative_tokens") or 1) if isinstance(config, dict) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vllm serve", allow_abbrev=False)
    parser.add_argument("model_tag", nargs="?")
    for line in _FLAGS.read_text().splitlines()[1:]:
        name, kind, *short = line.split()
        if kind == "switch":
            action = argparse.BooleanOptionalAction
            parser.add_argument(name, *short, action=action, default=None)
        elif kind == "list":
            parser.add_argument(name, *short, nargs="+")
        else:
            parser.add_argument(name, *short, type=_TYPES[kind])
    return parser


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        message = f"Value {text} cannot be converted to {json.loads}."
        raise argparse.ArgumentTypeError(message) from None


def _context_length(text: str) -> int | None:
    """`32768`, `32k` (thousands), `32K` (times 1024), `auto` (the model's own, None)."""
    if text in ("auto", "-1"):
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to an integer.")
    factors = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
    return int(float(match[1]) * factors[match[2]])


def _dashed(word: str) -> str:
    """vLLM takes `--max_model_len` for `--max-model-len`."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


_TYPES: dict[str, Callable[[str], Any]] = {
    "int": int,
    "json": _json,
    "length": _context_length,
    "text": str,
}
