"""What a caller wants, the same for every API: the routes translate their bodies into an `Ask`."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from inference.simulator import tokens
from inference.simulator.faults import Directives, directives_in
from inference.simulator.flags import Options
from inference.simulator.http import ApiError

MAX_ANSWERS = 16_384  # vLLM's VLLM_MAX_N_SEQUENCES


@dataclass(frozen=True, kw_only=True)
class Tool:
    name: str
    schema: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Turn:
    role: str
    text: str
    is_tool_result: bool = False


@dataclass(frozen=True, kw_only=True)
class Ask:
    turns: tuple[Turn, ...]
    raw: bool = False
    """A bare completion: no chat template, no roles."""
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    stream: bool = False
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    """`none`, `auto`, `required`, or a tool's name."""
    thinking: bool = False
    closed_thoughts: bool = False
    """The template ends the thoughts before they begin, as Qwen's does where they are off."""
    json_schema: dict[str, Any] | None = None
    directives: Directives = field(default_factory=Directives)

    @property
    def last_user(self) -> str:
        texts = [
            turn.text for turn in self.turns if turn.role == "user" and not turn.is_tool_result
        ]
        return texts[-1] if texts else ""

    def prompt_pieces(self) -> list[str]:
        """The rendered prompt as tokens; a turn's overhead is spent on its role."""
        if self.raw:
            return tokens.split(self.turns[0].text)
        pieces: list[str] = []
        for tool in self.tools:
            pieces += tokens.split(json.dumps([tool.name, tool.schema], sort_keys=True))
        for turn in self.turns:
            pieces += [f"<{turn.role}>"] * tokens.TURN_OVERHEAD + tokens.split(turn.text)
        pieces += ["<assistant>"] * tokens.REPLY_OVERHEAD
        return pieces + ["<think>", "</think>"] * self.closed_thoughts


def check_model(body: dict[str, Any], options: Options) -> None:
    """vLLM takes a missing name for its first one, and answers 404 to a wrong one."""
    name = body.get("model")
    if name and name not in options.served_names:
        known = ", ".join(f"`{served}`" for served in options.served_names)
        message = f"The model `{name}` does not exist. Available models: {known}."
        raise ApiError(404, message, param="model")


def answers_asked(body: dict[str, Any]) -> int:
    """`n`, in vLLM's bounds."""
    n = body.get("n")
    if n is None:
        return 1
    if not isinstance(n, int):
        raise validation_error("body.n", "Input should be a valid integer", n)
    if n < 1:
        raise ApiError(400, f"n must be at least 1, got {n}.")
    if n > MAX_ANSWERS:
        message = (
            f"n must be at most {MAX_ANSWERS}, got {n}. To increase this limit, set the "
            "VLLM_MAX_N_SEQUENCES environment variable."
        )
        raise ApiError(400, message)
    return n


def require(body: dict[str, Any], name: str) -> Any:
    """The value, or vLLM's 400."""
    if body.get(name) in (None, [], ""):
        raise validation_error(f"body.{name}", "Field required", f"<dict of {len(body)} items>")
    return body[name]


def validation_error(where: str, message: str, value: Any) -> ApiError:
    detail = {"type": "missing", "loc": where, "msg": message, "input": value}
    return ApiError(400, f"1 validation error:\n  {detail}", param=where, invalid=True)


def obey(ask: Ask, body: dict[str, Any]) -> None:
    """Refuse now if the prompt asks for a refusal."""
    if ask.directives.echo_error:
        raise validation_error("body.messages", "Input should be a valid list", body)
    if ask.directives.status and ask.directives.status >= 400:
        raise ApiError(ask.directives.status, "Simulated failure.")


def check_length(*, prompt_tokens: int, max_tokens: int | None, max_model_len: int) -> int:
    """The room left for the answer. vLLM refuses a limit beyond the context, else it clamps."""
    if max_tokens is not None and max_tokens < 1:
        message = f"max_tokens must be at least 1, got {max_tokens}."
        raise ApiError(400, message, param="max_tokens")
    if max_tokens is not None and max_tokens > max_model_len:
        message = (
            f"max_tokens={max_tokens} cannot be greater than max_model_len={max_model_len}. "
            "Please request fewer output tokens."
        )
        raise ApiError(400, message, param="max_tokens")
    if prompt_tokens >= max_model_len:
        asked = max_tokens or 1
        message = (
            f"This model's maximum context length is {max_model_len} tokens. However, you "
            f"requested {asked} output tokens and your prompt contains at least {prompt_tokens} "
            f"input tokens, for a total of at least {prompt_tokens + asked} tokens. Please reduce "
            "the length of the input prompt or the number of requested output tokens."
        )
        raise ApiError(400, message, param="input_tokens")
    return min(max_tokens or max_model_len, max_model_len - prompt_tokens)


def text_of(content: Any) -> str:
    """All text in a message's content, in any API's block types; an image is one word."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return json.dumps(content, sort_keys=True)
    return "".join(_block_text(block) for block in content)


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return str(block)
    for key in ("text", "thinking", "content"):
        if key in block:
            return text_of(block[key])
    if "image" in str(block.get("type")):
        return "<image>"
    return json.dumps(block.get("input", block.get("arguments", "")), sort_keys=True)


def stops(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def pick_tools(tools: Iterable[Tool], *, choice: str, auto_tools: bool) -> tuple[Tool, ...]:
    """vLLM refuses `auto` unless it was started with a tool parser."""
    offered = tuple(tools)
    if offered and choice == "auto" and not auto_tools:
        message = (
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        )
        raise ApiError(400, message, param="tool_choice")
    if choice not in ("none", "auto", "required") and choice not in {t.name for t in offered}:
        raise ApiError(400, "The tool named by `tool_choice` is not in `tools`.")
    return offered


def thinks(options: Options, asked: dict[str, Any] | None) -> bool:
    """Thinking is on with a reasoning parser, unless the template arguments say otherwise."""
    wanted = {**options.template_kwargs, **(asked or {})}.get("enable_thinking")
    return bool(options.reasoning_parser) if wanted is None else bool(wanted)


def closes_thoughts(options: Options, asked: dict[str, Any] | None) -> bool:
    return bool(options.reasoning_parser) and not thinks(options, asked)


def find_directives(turns: Iterable[Turn]) -> Directives:
    return directives_in(Ask(turns=tuple(turns)).last_user)
