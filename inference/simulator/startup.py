"""What can go wrong before an engine serves, in vLLM's words: log lines go to stdout, tracebacks
to stderr, and the caller exits 1."""

import os
import socket
import sys

from inference.simulator.faults import ProcessFault
from inference.simulator.flags import Options
from inference.simulator.settings import Settings

TOOL_PARSERS = frozenset((
    "deepseek_v3", "deepseek_v31", "deepseek_v32", "ernie45", "gigachat3", "glm45", "glm47",
    "granite", "granite4", "hermes", "hunyuan_a13b", "internlm", "jamba", "kimi_k2",
    "llama3_json", "llama4_json", "llama4_pythonic", "longcat", "minimax", "minimax_m2",
    "mistral", "olmo3", "openai", "phi4_mini_json", "pythonic", "qwen3_coder", "qwen3_xml",
    "seed_oss", "step3", "xlam",
))  # fmt: skip
REASONING_PARSERS = frozenset((
    "deepseek_r1", "deepseek_v3", "ernie45", "glm45", "granite", "holo2", "hunyuan_a13b",
    "kimi_k2", "minimax_m2", "minimax_m2_append_think", "mistral", "nemotron_v3", "olmo3",
    "openai_gptoss", "qwen3", "seed_oss", "step3",
))  # fmt: skip


def say(line: str) -> None:
    print(f"(APIServer pid={os.getpid()}) INFO {line}", flush=True)


def check(*, options: Options, settings: Settings) -> bool:
    """Everything that vLLM refuses before it loads weights."""
    problem = _problem(options, settings)
    if problem:
        _fail(problem)
    return problem is None


def _problem(options: Options, settings: Settings) -> str | None:
    tool, reasoning, length = options.tool_parser, options.reasoning_parser, options.max_model_len
    if ProcessFault.REFUSE_START in settings.faults:
        return "KeyError: invalid tool call parser: simulated"
    if options.auto_tools and not tool:
        return "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser"
    if tool and tool not in TOOL_PARSERS:
        known = ",".join(sorted(TOOL_PARSERS))
        return f"KeyError: invalid tool call parser: {tool} (chose from {{ {known} }})"
    if reasoning and reasoning not in REASONING_PARSERS:
        return f"KeyError: Reasoning parser '{reasoning}' not found."
    if options.model.startswith("/") and not os.path.isdir(options.model):
        return (
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' "
            f"or 'namespace/repo_name': '{options.model}'."
        )
    if length and length > settings.model_max_len:
        return (
            f"ValueError: User-specified max_model_len ({length}) is greater than the derived "
            f"max_model_len (max_position_embeddings={settings.model_max_len})."
        )
    return None


def check_memory(*, options: Options, settings: Settings) -> bool:
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
