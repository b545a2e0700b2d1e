"""What can go wrong before an engine serves, in vLLM's words: log lines go to stdout, tracebacks
to stderr, and the caller exits 1 (2 for the command line)."""

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inference.simulator import templates
from inference.simulator.faults import ProcessFault
from inference.simulator.flags import Options
from inference.simulator.model import Model
from inference.simulator.parsers import REASONING_PARSERS, TOOL_PARSERS
from inference.simulator.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Problem:
    check: str
    """`flags`, `parsers`, `template`, `context` or `weights`."""
    code: str
    text: str


def say(line: str, *, who: str = "APIServer") -> None:
    print(f"({who} pid={os.getpid()}) INFO {line}", flush=True)


def refused_flag(argv: Sequence[str], settings: Settings) -> str | None:
    """With the fault `refuse-flag`: what argparse would say of the first flag."""
    if ProcessFault.REFUSE_FLAG not in settings.faults:
        return None
    flag = next((word for word in argv if word.startswith("--")), "--simulated")
    return f"vllm: error: unrecognized arguments: {flag}"


def check(*, options: Options, settings: Settings, model: Model) -> bool:
    """Everything that vLLM refuses before it loads weights."""
    problem = next(problems(options, settings, model), None)
    if problem:
        _fail(problem.text)
    return problem is None


def problems(options: Options, settings: Settings, model: Model) -> Iterator[Problem]:
    """In the order in which vLLM finds them; it stops at the first."""
    if ProcessFault.REFUSE_START in settings.faults:
        text = "KeyError: invalid tool call parser: simulated"
        yield Problem(check="parsers", code="parser_unknown", text=text)
    if missing := templates.missing_file(options):
        yield Problem(check="template", code="template_bad", text=missing)
    yield from _parser_problems(options)
    if model.missing:
        yield Problem(check="weights", code="weights_missing", text=model.missing)
    length = options.max_model_len
    if length and length > settings.model_max_len:
        text = (
            f"ValueError: User-specified max_model_len ({length}) is greater than the derived "
            f"max_model_len (max_position_embeddings={settings.model_max_len})."
        )
        yield Problem(check="context", code="context_too_long", text=text)


def _parser_problems(options: Options) -> Iterator[Problem]:
    """vLLM looks at the tool parser only where tools are on."""
    tool, reasoning = options.tool_parser, options.reasoning_parser
    if options.auto_tools and not tool:
        text = "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser"
        yield Problem(check="flags", code="flag_value", text=text)
    elif options.auto_tools and tool not in TOOL_PARSERS:
        known = ",".join(sorted(TOOL_PARSERS))
        text = f"KeyError: invalid tool call parser: {tool} (chose from {{ {known} }})"
        yield Problem(check="parsers", code="parser_unknown", text=text)
    if reasoning and reasoning not in REASONING_PARSERS:
        text = f"KeyError: Reasoning parser '{reasoning}' not found."
        yield Problem(check="parsers", code="parser_unknown", text=text)


def fail_for(text: str | None) -> bool:
    if text:
        _fail(text)
    return text is not None


def check_cache(*, options: Options, settings: Settings) -> bool:
    """After loading: does one request of full length fit into the KV cache?"""
    length = options.max_model_len or settings.model_max_len
    room = settings.kv_cache_tokens
    if ProcessFault.DIE_AFTER_LOADING in settings.faults:
        room = length // 2
    if length <= room:
        return True
    per_token = 65_536
    _fail(
        f"ValueError: To serve at least one request with the model's max seq len ({length}), "
        f"({length * per_token / 2**30:.2f} GiB KV cache is needed, which is larger than the "
        f"available KV cache memory ({room * per_token / 2**30:.2f} GiB). Based on the available "
        f"memory, the estimated maximum model length is {room}. Try increasing "
        "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
    )
    return False


def bind(options: Options) -> socket.socket | None:
    """Takes the port without listening: until loading is over, connections are refused."""
    if options.uds:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(options.uds)
        return listener
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as error:
        _fail(f"OSError: [Errno {error.errno}] {error.strerror}")
        return None
    return listener


def _fail(message: str) -> None:
    print(f"(APIServer pid={os.getpid()}) ERROR {message}", flush=True)
    print(f"Traceback (most recent call last):\n{message}", file=sys.stderr, flush=True)
