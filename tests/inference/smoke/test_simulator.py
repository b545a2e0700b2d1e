"""Every check against real simulator processes: a well one, and one with each fault."""

import pytest

from inference import smoke
from inference.engine import Engine
from inference.smoke.words import WORDS
from tests.inference.simulator.engines import PARSERS, RunningEngine, running

LIMITS = smoke.Limits(first=5, whole=10)
HURRIED = smoke.Limits(first=0.5, whole=1.5)
"""Where many checks wait for what never comes."""
CHAT = smoke.Target(
    name="nan",
    names=("nan", "nan-sim-35b"),
    capabilities=frozenset({"chat", "tools", "reasoning", "vision"}),
    context=65_536,
)
ALL = ("--max-model-len", "65536", *PARSERS)
OF_CHAT = [
    "health",
    "names",
    "chat",
    "stream",
    "reasoning",
    "reasoning_stream",
    "thinking_off",
    "tools",
    "tools_stream",
    "message",
    "messages",
    "messages_tools",
    "responses",
    "responses_stream",
    "responses_tools",
    "vision",
    "long_context",
]
OF_TOOLS = ["tools", "tools_stream", "messages_tools", "responses_tools"]


def failures(
    running_engine: RunningEngine, target: smoke.Target = CHAT, limits: smoke.Limits = LIMITS
) -> dict[str, str]:
    """Check and code of everything that failed; each with a sentence, and in time."""
    found = {}
    with Engine(running_engine.url) as engine:
        for name in smoke.checks_for(target):
            outcome = smoke.run(name, engine, target, limits=limits)
            assert outcome.seconds < limits.whole + 1, name
            if not outcome.ok:
                found[name] = outcome.code
                assert outcome.code in WORDS
    return found


def test_checks_are_chosen_by_what_the_model_claims() -> None:
    assert smoke.checks_for(CHAT) == OF_CHAT
    plain = smoke.Target(name="small", capabilities=frozenset({"chat"}), context=8192)
    routes = ["message", "messages", "responses", "responses_stream"]
    assert smoke.checks_for(plain) == ["health", "names", "chat", "stream", *routes]
    vectors = smoke.Target(name="embed", capabilities=frozenset({"embedding"}), context=8192)
    assert smoke.checks_for(vectors) == ["health", "names", "embedding"]
    drafts = smoke.Target(name="x", capabilities=frozenset({"chat", "speculative"}))
    assert smoke.checks_for(drafts)[-1] == "speculative"


def test_a_well_engine_passes_every_check() -> None:
    with running(*ALL) as engine:
        assert failures(engine) == {}
        vectors = smoke.Target(name="nan", capabilities=frozenset({"embedding"}))
        assert failures(engine, vectors) == {}


@pytest.mark.parametrize(
    ("fault", "check", "code"),
    [
        ("hang", "names", "smoke_hang"),
        ("think-in-content", "chat", "smoke_think_in_content"),
        ("think-anyway", "thinking_off", "smoke_thinks_anyway"),
        ("empty-content", "chat", "smoke_empty"),
        ("lose-tool-calls", "tools", "smoke_tool_call_lost"),
        ("stream-only-hang", "stream", "smoke_stream_hang"),
    ],
)
def test_each_fault_is_named_by_its_own_code(fault: str, check: str, code: str) -> None:
    limits = HURRIED if "hang" in fault else LIMITS
    with running(*ALL, SIM_FAULTS=fault) as engine:
        found = failures(engine, limits=limits)
    assert next(iter(found.items())) == (check, code)


def test_a_hang_only_in_streams_leaves_plain_answers_well() -> None:
    with running(*ALL, SIM_FAULTS="stream-only-hang") as engine:
        found = failures(engine, limits=HURRIED)
    streams = ["stream", "reasoning_stream", "thinking_off", "tools_stream", "messages"]
    streams += ["messages_tools", "responses_stream", "responses_tools"]
    assert found == dict.fromkeys(streams, "smoke_stream_hang")


def test_lost_tool_calls_touch_nothing_else() -> None:
    with running(*ALL, SIM_FAULTS="lose-tool-calls") as engine:
        found = failures(engine)
    assert found == dict.fromkeys(OF_TOOLS, "smoke_tool_call_lost")


def test_thoughts_that_can_t_be_turned_off_touch_nothing_else() -> None:
    with running(*ALL, SIM_FAULTS="think-anyway") as engine:
        assert failures(engine) == {"thinking_off": "smoke_thinks_anyway"}


def test_an_engine_without_a_tool_parser_refuses_tools() -> None:
    with running("--max-model-len", "65536") as engine:
        found = failures(engine)
    refused = dict.fromkeys(["tools", "tools_stream", "messages_tools"], "smoke_refused")
    assert found == {**refused, "responses_tools": "smoke_tool_call_lost"}


def test_a_name_that_was_not_given_to_it() -> None:
    with running(*ALL) as engine:
        target = smoke.Target(name="nan", names=("nan", "other"), capabilities=CHAT.capabilities)
        assert failures(engine, target)["names"] == "smoke_name_unknown"


def test_a_shorter_context_than_promised() -> None:
    with running(*PARSERS, "--max-model-len", "16384") as engine:
        assert failures(engine) == {"long_context": "smoke_context"}


def test_a_stranger_s_key_and_a_closed_port() -> None:
    with running(*ALL, "--api-key", "secret") as engine:
        plain = smoke.Target(name="nan", capabilities=frozenset({"embedding"}))
        assert failures(engine, plain) == dict.fromkeys(
            ["names", "embedding"], "smoke_not_admitted"
        )
    found = failures(engine, plain)
    assert found == {
        "health": "smoke_unhealthy",
        "names": "smoke_unreachable",
        "embedding": "smoke_unreachable",
    }
