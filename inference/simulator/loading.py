"""The time between the start and the first answer, with the lines that vLLM logs meanwhile."""

import os
import signal
import time
from collections.abc import Callable
from types import FrameType

from inference.simulator.faults import ProcessFault
from inference.simulator.flags import Options
from inference.simulator.settings import Settings
from inference.simulator.startup import say

_EARLY_SECONDS = 5.0
_WEIGHTS_SHARE = 0.8
"""Of the load time; the rest is for the KV cache and the CUDA graphs."""
_SECONDS_A_SHARD = 10


def load(options: Options, settings: Settings, *, give_up: Callable[[], None]) -> None:
    """A SIGTERM in the first seconds ends it with 143; later the first one is lost."""
    began, lost = time.monotonic(), False

    def on_term(number: int, frame: FrameType | None) -> None:
        nonlocal lost
        if ProcessFault.IGNORE_SIGTERM in settings.faults:
            return
        if lost or time.monotonic() - began < _EARLY_SECONDS:
            give_up()
            os._exit(128 + signal.SIGTERM)
        lost = True

    signal.signal(signal.SIGTERM, on_term)
    say(f"Loading {options.model} as {', '.join(options.served_names)}")
    say(f"Starting to load model {options.model}...", who="Worker")
    shards = min(40, max(4, round(settings.load_seconds / _SECONDS_A_SHARD)))
    for done in range(1, shards + 1):
        time.sleep(settings.load_seconds * _WEIGHTS_SHARE / shards)
        line = f"Loading safetensors checkpoint shards: {100 * done // shards:3d}% Completed"
        say(f"{line} | {done}/{shards}", who="Worker")
    seconds = settings.load_seconds * _WEIGHTS_SHARE
    gib = settings.memory_mib / 1024
    say(f"Model loading took {gib:.2f} GiB memory and {seconds:.6f} seconds", who="Worker")
    time.sleep(settings.load_seconds * (1 - _WEIGHTS_SHARE))


def announce_cache(options: Options, settings: Settings) -> None:
    """The line from which the fit is read; only an engine with room enough comes this far."""
    length = options.max_model_len or settings.model_max_len
    tokens = settings.kv_cache_tokens
    say(f"GPU KV cache size: {tokens:,} tokens, {_concurrency(tokens, length)}", who="EngineCore")
    say("Graph capturing finished in 5 secs, took 0.34 GiB", who="Worker")


def _concurrency(tokens: int, length: int) -> str:
    return f"Maximum concurrency for {length:,} tokens per request: {tokens / length:.2f}x"
