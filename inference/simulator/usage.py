"""Token counts of a finished generation, in the words of each API."""

from typing import Any

from inference.simulator.engine import Generation


def chat_usage(generation: Generation) -> dict[str, Any]:
    return {
        "prompt_tokens": generation.prompt_tokens,
        "total_tokens": generation.prompt_tokens + generation.completion_tokens,
        "completion_tokens": generation.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": generation.cached_tokens},
    }


def messages_usage(generation: Generation) -> dict[str, Any]:
    return {
        "input_tokens": generation.prompt_tokens,
        "output_tokens": generation.completion_tokens,
    }


def responses_usage(generation: Generation) -> dict[str, Any]:
    return {
        "input_tokens": generation.prompt_tokens,
        "input_tokens_details": {"cached_tokens": generation.cached_tokens},
        "output_tokens": generation.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": generation.reasoning_tokens},
        "total_tokens": generation.prompt_tokens + generation.completion_tokens,
    }
