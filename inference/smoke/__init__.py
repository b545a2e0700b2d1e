"""Checks that prove a new engine before any member meets it.

They go straight to the engine under test. Each check is a small function with an expected result;
a failure has a code, and `inference.smoke.words` a sentence for it. A hang is a failure: every
check ends by itself within its limits. They run in the order of `CHECKS`; the first failure is
usually the cause of those after it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from inference.engine import Engine, EngineUnavailable
from inference.smoke import agent_checks, chat_checks, route_checks, thinking_checks
from inference.smoke.asking import LIMITS, Failed, Limits, Outcome, Run, Target, failure

__all__ = ["CHECKS", "Check", "Limits", "Outcome", "Target", "checks_for", "judge", "run"]

LONG_CONTEXT = 32_768
"""Tokens from which on a model is claimed to be good for long prompts."""


@dataclass(frozen=True, kw_only=True)
class Check:
    name: str
    needs: frozenset[str]
    """Capabilities of the model without which the check says nothing."""
    run: Callable[[Run], None]
    """Returns when all is as expected, else raises Failed."""


def _check(name: str, run: Callable[[Run], None], *needs: str) -> Check:
    return Check(name=name, needs=frozenset(needs), run=run)


CHECKS: tuple[Check, ...] = (
    _check("health", route_checks.health),
    _check("names", route_checks.names),
    _check("chat", chat_checks.plain, "chat"),
    _check("stream", chat_checks.stream, "chat"),
    _check("reasoning", chat_checks.reasoning, "chat", "reasoning"),
    _check("reasoning_stream", chat_checks.reasoning_stream, "chat", "reasoning"),
    _check("thinking_off", thinking_checks.thinking_off, "chat", "reasoning"),
    _check("tools", chat_checks.tools, "chat", "tools"),
    _check("tools_stream", chat_checks.tools_stream, "chat", "tools"),
    _check("message", agent_checks.message, "chat"),
    _check("messages", route_checks.messages, "chat"),
    _check("messages_tools", agent_checks.messages_tools, "chat", "tools"),
    _check("responses", route_checks.responses, "chat"),
    _check("responses_stream", route_checks.responses_stream, "chat"),
    _check("responses_tools", agent_checks.responses_tools, "chat", "tools"),
    _check("vision", chat_checks.vision, "chat", "vision"),
    _check("long_context", chat_checks.long_context, "chat", "long_context"),
    _check("embedding", route_checks.embedding, "embedding"),
    _check("speculative", chat_checks.speculative, "chat", "speculative"),
)
_BY_NAME = {check.name: check for check in CHECKS}


def checks_for(target: Target) -> list[str]:
    has = set(target.capabilities)
    if target.context >= LONG_CONTEXT:
        has.add("long_context")
    return [check.name for check in CHECKS if check.needs <= has]


def run(name: str, engine: Engine, target: Target, *, limits: Limits = LIMITS) -> Outcome:
    """One of CHECKS by its name; see `judge`."""
    return judge(_BY_NAME[name].run, engine, target, limits=limits)


def judge(
    check: Callable[[Run], None], engine: Engine, target: Target, *, limits: Limits = LIMITS
) -> Outcome:
    """One check, which raises nothing of its own and ends within `limits.whole` and a few seconds
    (the short calls before it, such as `/v1/models`, have their own limit)."""
    began = time.monotonic()
    outcome = _outcome(check, Run(engine=engine, target=target, limits=limits))
    return replace(outcome, seconds=round(time.monotonic() - began, 3))


def _outcome(check: Callable[[Run], None], conversation: Run) -> Outcome:
    try:
        check(conversation)
    except Failed as failed:
        return Outcome(ok=False, code=failed.code, detail=failed.detail)
    except EngineUnavailable as error:
        named = failure(error, hang="smoke_hang")
        return Outcome(ok=False, code=named.code, detail=named.detail)
    return Outcome(ok=True)
