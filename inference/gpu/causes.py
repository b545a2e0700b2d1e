"""Why an engine ended, in its own words: patterns measured on vLLM 0.32 (see its start-up tests).

The first pattern that is found in the last lines wins; specific ones stand first, because one
failure is followed by others ("Engine core initialization failed").
"""

import re
from collections.abc import Iterable

from inference.excerpt import excerpt

TEXT_LENGTH = 400
"""Of vLLM's longest sentence that is looked for, with its advice at the end; rows hold as much."""
_PATTERNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("flag_refused", (r"unrecognized arguments: .+", r"invalid choice: .+")),
    ("speculative_bad", (r"validation errors? for SpeculativeConfig.*",)),
    ("flag_value", (r"argument --[\w/. -]+: .+", r"validation errors? for \w+Config.*")),
    ("weights_missing", (
        r"LocalEntryNotFoundError.*",
        r"HFValidationError: Repo id must be in the form.*",
        r"OfflineModeIsEnabled.*",
        r"Cannot find any model weights.*",
        r".*does not appear to have a file named.*",
    )),
    ("context_too_long", (r"User-specified max_model_len \(\d+\) is greater than the derived.*",)),
    ("kv_cache_too_small", (
        r"To serve at least one request with the model's max seq len.*",
        r"No available memory for the cache blocks.*",
    )),
    ("gpu_memory", (
        r"Available memory .*less than requested.*",
        r"Free memory on device .*less than.*",
        r"(?:torch\.)?(?:cuda\.)?OutOfMemoryError.*",
        r"CUDA out of memory.*",
    )),
    ("port_taken", (r"[^()]*Address already in use.*",)),
    ("parser_unknown", (
        r"invalid (?:tool call|reasoning) parser.*",
        r"(?:Reasoning|Tool) parser '.*' not found.*",
    )),
    ("engine_missing", (r"Cannot start .*: No such file or directory",)),
)  # fmt: skip
_COMPILED = tuple((code, re.compile("|".join(found))) for code, found in _PATTERNS)
_ERROR = re.compile(r"^(?:\([^)]*\) )?(?:ERROR .*?)?([A-Za-z_.]*(?:Error|Exception|Interrupt)\b.*)")
_ERROR_NAME = re.compile(r"\b[A-Za-z_.]*(?:Error|Exception)\b")


def recognise(
    lines: Iterable[str], *, exit_code: int | None, signalled: bool, serving: bool
) -> dict[str, str] | None:
    """None for an end that was asked for.

    `signalled`: by us. After it has served, an error's message may quote a request: its name only.
    """
    if signalled:
        return None
    last = list(lines)
    if not serving:
        for code, pattern in _COMPILED:
            if found := _last(pattern, last):
                return {"code": code, "text": excerpt(found, TEXT_LENGTH)}
    error = _last(_ERROR, last)
    if serving:
        name = _ERROR_NAME.search(error)
        error = name[0] if name else ""
    if exit_code is not None and exit_code < 0:
        text = f"Ended by signal {-exit_code}. {error}".strip()
        return {"code": "killed", "text": excerpt(text, TEXT_LENGTH)}
    return {"code": "died", "text": excerpt(error, TEXT_LENGTH)}


def _last(pattern: re.Pattern[str], lines: list[str]) -> str:
    for line in reversed(lines):
        if found := pattern.search(line):
            return (found[1] if found.re.groups else found[0]).strip()
    return ""
