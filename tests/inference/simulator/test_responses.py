"""OpenAI's Responses API."""

import itertools

from tests.inference.simulator.engines import (
    ANSWER,
    RESPONSES_TOOL,
    THOUGHT,
    RunningEngine,
    data_of,
    event_names,
)

OFF = {"reasoning": {"effort": "none"}}


def test_whole_answer(engine: RunningEngine) -> None:
    answer = engine.post("/v1/responses", input="hi", instructions="Be short").json()
    reasoning, message = answer["output"]
    assert reasoning["content"] == [{"text": THOUGHT, "type": "reasoning_text"}]
    text = {"annotations": [], "text": ANSWER, "type": "output_text", "logprobs": None}
    assert message.pop("id").startswith("msg_")
    assert message == {
        "content": [text],
        "role": "assistant",
        "status": "completed",
        "type": "message",
    }
    assert (answer["object"], answer["status"], answer["model"]) == ("response", "completed", "nan")
    assert answer["usage"] == {
        "input_tokens": 14,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 36,
        "output_tokens_details": {"reasoning_tokens": 13},
        "total_tokens": 50,
    }


def test_cut_answer_is_incomplete(engine: RunningEngine) -> None:
    body = {"input": "[sim:tokens=9]", "max_output_tokens": 2, **OFF}
    answer = engine.post("/v1/responses", **body).json()
    assert answer["status"] == "incomplete"
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert answer["output"][0]["content"][0]["text"] == "one two"


def test_stream_order(engine: RunningEngine) -> None:
    response = engine.post("/v1/responses", input="hi [sim:tokens=3]", stream=True)
    names, events = event_names(response), data_of(response)
    assert [event["type"] for event in events] == names
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [name for name, _ in itertools.groupby(n.removeprefix("response.") for n in names)] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "reasoning_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    texts = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    assert texts == ["one", " two", " three"]
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done


def test_tool_call_streamed(engine: RunningEngine) -> None:
    turn = {"role": "user", "content": [{"type": "input_text", "text": "use the tool"}]}
    body = {"input": [turn], "tools": [RESPONSES_TOOL, {"type": "web_search"}], **OFF}
    response = engine.post("/v1/responses", stream=True, **body)
    names = event_names(response)
    assert [n for n, _ in itertools.groupby(names)][2:] == [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    [item] = data_of(response)[-1]["response"]["output"]
    assert item.pop("id").startswith("fc_")
    assert item.pop("call_id").startswith("call_")
    assert item == {
        "arguments": '{"city": "example", "days": 2}',
        "name": "weather",
        "type": "function_call",
        "status": "completed",
    }


def test_function_output_ends_the_loop(engine: RunningEngine) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}
    given = [
        {"role": "user", "content": "use the tool"},
        call,
        {"type": "function_call_output", "call_id": "c", "output": "sunny"},
    ]
    answer = engine.post("/v1/responses", input=given, tools=[RESPONSES_TOOL], **OFF).json()
    assert [item["type"] for item in answer["output"]] == ["message"]


def test_nothing_is_stored(engine: RunningEngine) -> None:
    response = engine.post("/v1/responses", input="hi", previous_response_id="resp_1")
    error = response.json()["error"]
    assert (response.status_code, error["message"]) == (404, "Response with id 'resp_1' not found.")
