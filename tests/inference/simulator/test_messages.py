"""Anthropic's API as vLLM serves it: event order, block indices, errors in its shape."""

from tests.inference.simulator.engines import (
    ANSWER,
    MESSAGES_TOOL,
    THOUGHT,
    TOOL_INPUT,
    RunningEngine,
    data_of,
    event_names,
)

OFF = {"thinking": {"type": "disabled"}}


def create(engine: RunningEngine, prompt: str, **body: object) -> dict[str, object]:
    messages = [{"role": "user", "content": prompt}]
    response = engine.post(
        "/v1/messages", messages=messages, **{"model": "nan", "max_tokens": 99, **body}
    )
    assert response.status_code == 200
    return dict(response.json())


def test_whole_answer(engine: RunningEngine) -> None:
    answer = create(engine, "hi")
    assert str(answer.pop("id")).startswith("chatcmpl-")
    thinking, text = answer.pop("content")
    assert thinking.pop("signature")
    assert thinking == {"type": "thinking", "thinking": THOUGHT}
    assert text == {"type": "text", "text": ANSWER}
    assert answer == {
        "type": "message",
        "role": "assistant",
        "model": "nan",
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 8, "output_tokens": 36},
    }


def test_stop_reasons_and_system(engine: RunningEngine) -> None:
    cut = create(engine, "[sim:tokens=9]", max_tokens=2, system="Be short", **OFF)
    assert cut["content"] == [{"type": "text", "text": "one two"}]
    assert cut["stop_reason"] == "max_tokens"
    stopped = create(engine, "[sim:tokens=9]", stop_sequences=["two"], **OFF)
    assert stopped["content"] == [{"type": "text", "text": "one "}]


def test_tool_call(engine: RunningEngine) -> None:
    answer = create(engine, "go", tools=[MESSAGES_TOOL], tool_choice={"type": "any"}, **OFF)
    [block] = answer["content"]
    assert block.pop("id").startswith("chatcmpl-tool-")
    assert block == {"type": "tool_use", "name": "weather", "input": TOOL_INPUT}
    assert answer["stop_reason"] == "tool_use"


def test_stream_order(engine: RunningEngine) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "use the tool"}]}]
    body = {
        "model": "nan",
        "messages": messages,
        "max_tokens": 99,
        "stream": True,
        "tools": [MESSAGES_TOOL],
    }
    response = engine.post("/v1/messages", **body)
    names, events = event_names(response), data_of(response)
    assert events.pop() == "[DONE]"
    assert [event["type"] for event in events] == names
    deltas = names.count("content_block_delta")
    steps = [name for name in names if name != "content_block_delta"]
    block = ["content_block_start", "content_block_stop"]
    assert steps == ["message_start", *block, *block, "message_delta", "message_stop"]
    assert deltas == 13 + 1 + 16  # thoughts, their signature, the tool's input
    kinds = [(e["index"], e["delta"]["type"]) for e in events if "delta" in e and "index" in e]
    assert sorted(set(kinds)) == [
        (0, "signature_delta"),
        (0, "thinking_delta"),
        (1, "input_json_delta"),
    ]
    assert events[-2] == {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {
            "input_tokens": events[0]["message"]["usage"]["input_tokens"],
            "output_tokens": 30,
        },
    }


def test_tool_result_ends_the_loop(engine: RunningEngine) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": TOOL_INPUT}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
    messages = [
        {"role": "user", "content": "use the tool"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    body = {"model": "nan", "messages": messages, "max_tokens": 99, "tools": [MESSAGES_TOOL], **OFF}
    answer = engine.post("/v1/messages", **body).json()
    assert answer["content"] == [{"type": "text", "text": ANSWER}]


def test_count_tokens_is_what_the_answer_counts(engine: RunningEngine) -> None:
    messages = [{"role": "user", "content": "How many tokens are these?"}]
    counted = engine.post("/v1/messages/count_tokens", model="nan", messages=messages).json()
    answer = engine.post("/v1/messages", model="nan", messages=messages, max_tokens=1).json()
    assert counted == {"input_tokens": answer["usage"]["input_tokens"]}


def test_errors_have_anthropics_shape(engine: RunningEngine) -> None:
    response = engine.post("/v1/messages", model="x", max_tokens=1, messages=[])
    message = "The model `x` does not exist. Available models: `nan`, `nan-sim-35b`."
    error = {"type": "NotFoundError", "message": message}
    assert (response.status_code, response.json()) == (404, {"type": "error", "error": error})
