"""What a request would have LiteLLM or an engine fetch.

An image, a video, a sound or a file can be named by an address. LiteLLM (for files) and vLLM (for
the rest, by default from any host) would ask that address from inside the servers' network, and
tell the caller what was there. So contents come with the request, as `data:`; the engines are told
the same (inference/gpu/spec.py).

Only what a message is made of is looked into: a tool's arguments and results may hold any address,
as text.
"""

from __future__ import annotations

from typing import Any, Final

# A text each, or an object that holds one as `url`; in OpenAI's and vLLM's dialects.
NAMED: Final = ("image_url", "video_url", "audio_url", "file_url", "file_id")
HOLDERS: Final = ("file", "source")  # OpenAI's, Anthropic's
HELD: Final = ("url", "file_id")
WITHIN: Final = ("content", "output")  # the parts of a message, and of a tool's result


def is_elsewhere(content: Any) -> bool:
    """Of a message, a list of them, or the `input` of Responses; 254 levels deep at most."""
    if isinstance(content, list):
        return any(is_elsewhere(part) for part in content)
    if not isinstance(content, dict):
        return False
    return _names_a_place(content) or any(is_elsewhere(content.get(name)) for name in WITHIN)


def _names_a_place(part: dict[str, Any]) -> bool:
    values = [part.get(name) for name in NAMED]
    values = [value.get("url") if isinstance(value, dict) else value for value in values]
    for holder in (part.get(name) for name in HOLDERS):
        if isinstance(holder, dict):
            values += [holder.get(name) for name in HELD]
            if is_elsewhere(holder.get("content")):
                return True
    return any(value is not None and not _comes_along(value) for value in values)


def _comes_along(value: Any) -> bool:
    return isinstance(value, str) and value[:5].lower() == "data:"
