"""Chat and bare completions: shapes as vLLM 0.32.0 sends them, compared whole."""

from tests.inference.simulator.engines import (
    ANSWER,
    CHAT_TOOL,
    NO_THINKING,
    THOUGHT,
    TOOL_INPUT,
    RunningEngine,
    data_of,
)


def test_whole_answer(engine: RunningEngine) -> None:
    answer = engine.chat("hi", model="nan-sim-35b").json()
    assert answer.pop("id").startswith("chatcmpl-")
    assert isinstance(answer.pop("created"), int)
    message = {
        "role": "assistant",
        "content": ANSWER,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": [],
        "reasoning": THOUGHT,
    }
    assert answer == {
        "object": "chat.completion",
        "model": "nan",
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "stop",
                "stop_reason": None,
                "token_ids": None,
            }
        ],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": {
            "prompt_tokens": 8,
            "total_tokens": 44,
            "completion_tokens": 36,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "kv_transfer_params": None,
    }


def stream(engine: RunningEngine, prompt: str, **body: object) -> list[object]:
    response = engine.chat(prompt, stream=True, **{**NO_THINKING, **body})
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = data_of(response)
    assert events.pop() == "[DONE]"
    heads = {(e.pop("id"), e.pop("created"), e.pop("object"), e.pop("model")) for e in events}
    assert len(heads) == 1
    assert next(iter(heads))[2:] == ("chat.completion.chunk", "nan")
    return events


def choice(delta: dict[str, object], *, index: int = 0, **more: object) -> dict[str, object]:
    base = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
    return {"choices": [{**base, **more}]}


def test_stream_with_usage(engine: RunningEngine) -> None:
    events = stream(engine, "hi [sim:tokens=2]", stream_options={"include_usage": True})
    assert events == [
        choice({"role": "assistant", "content": ""}),
        choice({"content": "one"}),
        choice({"content": " two"}),
        choice({"content": ""}, finish_reason="stop", stop_reason=None),
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 18,
                "total_tokens": 20,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 0},
            },
        },
    ]


def test_stream_without_usage_has_no_usage_chunk(engine: RunningEngine) -> None:
    events = stream(engine, "hi [sim:tokens=1]")
    assert events[-1] == choice({"content": ""}, finish_reason="stop", stop_reason=None)


def test_stream_of_two_choices(engine: RunningEngine) -> None:
    events = stream(engine, "hi [sim:tokens=1]", n=2)
    ends = {"finish_reason": "stop", "stop_reason": None}
    assert events == [
        choice({"role": "assistant", "content": ""}, index=0),
        choice({"content": "one"}, index=0),
        choice({"role": "assistant", "content": ""}, index=1),
        choice({"content": "one"}, index=1),
        choice({"content": ""}, index=0, **ends),
        choice({"content": ""}, index=1, **ends),
    ]


def test_reasoning_streams_in_its_own_field(engine: RunningEngine) -> None:
    events = stream(engine, "hi", chat_template_kwargs={})
    deltas = [event["choices"][0]["delta"] for event in events]
    assert "".join(d.get("reasoning", "") for d in deltas) == THOUGHT
    assert "".join(d.get("content", "") for d in deltas) == ANSWER


def test_tool_call_whole(engine: RunningEngine) -> None:
    answer = engine.chat("Please use the tool", tools=[CHAT_TOOL], **NO_THINKING).json()
    [call] = answer["choices"][0]["message"]["tool_calls"]
    assert call.pop("id").startswith("chatcmpl-tool-")
    arguments = '{"city": "example", "days": 2}'
    assert call == {"type": "function", "function": {"name": "weather", "arguments": arguments}}
    assert answer["choices"][0]["message"]["content"] is None
    assert answer["choices"][0]["finish_reason"] == "tool_calls"


def test_tool_call_streamed(engine: RunningEngine) -> None:
    events = stream(engine, "go", tools=[CHAT_TOOL], tool_choice="required")
    calls = [e["choices"][0]["delta"]["tool_calls"][0] for e in events[1:-1]]
    assert calls[0].pop("id").startswith("chatcmpl-tool-")
    function = {"name": "weather", "arguments": ""}
    assert calls[0] == {"type": "function", "index": 0, "function": function}
    assert "".join(c["function"]["arguments"] for c in calls) == '{"city": "example", "days": 2}'
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert TOOL_INPUT == {"city": "example", "days": 2}


def test_tool_result_gets_words(engine: RunningEngine) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "use the tool"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    body = {"messages": messages, "tools": [CHAT_TOOL], **NO_THINKING}
    answer = engine.post("/v1/chat/completions", **body).json()
    assert answer["choices"][0]["message"]["content"] == ANSWER


def test_tools_are_offered_but_not_asked_for(engine: RunningEngine) -> None:
    for body in ({"tools": [CHAT_TOOL]}, {"tools": [CHAT_TOOL], "tool_choice": "none"}):
        answer = engine.chat("hello", **body).json()
        assert answer["choices"][0]["message"]["tool_calls"] == []


def test_auto_tools_need_a_parser(bare: RunningEngine) -> None:
    response = bare.chat("use the tool", tools=[CHAT_TOOL])
    assert (response.status_code, response.json()) == (
        400,
        {
            "error": {
                "message": '"auto" tool choice requires --enable-auto-tool-choice and '
                "--tool-call-parser to be set",
                "type": "BadRequestError",
                "param": "tool_choice",
                "code": 400,
            }
        },
    )


def test_thinking_on_request_without_a_parser(bare: RunningEngine) -> None:
    on = bare.chat("hi", chat_template_kwargs={"enable_thinking": True}).json()
    off = bare.chat("hi").json()
    assert [a["choices"][0]["message"]["reasoning"] for a in (on, off)] == [THOUGHT, None]


def test_max_tokens_cuts_and_says_length(engine: RunningEngine) -> None:
    answer = engine.chat("hi [sim:tokens=50]", max_tokens=3, **NO_THINKING).json()
    assert answer["choices"][0]["message"]["content"] == "one two three"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 3


def test_stop_cuts_and_says_which(engine: RunningEngine) -> None:
    answer = engine.chat("[sim:tokens=9]", stop=["four", "three"], **NO_THINKING).json()
    assert answer["choices"][0]["message"]["content"] == "one two "
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["stop_reason"] == "three"


def test_n_counts_all_tokens(engine: RunningEngine) -> None:
    answer = engine.chat("[sim:tokens=3]", n=3, **NO_THINKING).json()
    assert [c["index"] for c in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["completion_tokens"] == 9


def test_n_has_vllms_bounds(engine: RunningEngine) -> None:
    for n, message in (
        (0, "n must be at least 1, got 0."),
        (
            1_000_000,
            "n must be at most 16384, got 1000000. To increase this limit, set the "
            "VLLM_MAX_N_SEQUENCES environment variable.",
        ),
    ):
        chat = engine.chat("hi", n=n)
        bare = engine.post("/v1/completions", prompt="hi", n=n)
        for answer in (chat, bare):
            assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)
    assert engine.chat("hi", n="2").status_code == 400


def test_json_schema_is_followed(engine: RunningEngine) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    answer = engine.chat("hi", response_format=wanted, **NO_THINKING).json()
    assert answer["choices"][0]["message"]["content"] == '{"ok": true}'


def test_reply_with_exactly(engine: RunningEngine) -> None:
    answer = engine.chat('Reply with exactly: "pong"', **NO_THINKING).json()
    assert answer["choices"][0]["message"]["content"] == "pong"


def test_unknown_model_lists_the_names(engine: RunningEngine) -> None:
    response = engine.chat("hi", model="gpt-9")
    message = "The model `gpt-9` does not exist. Available models: `nan`, `nan-sim-35b`."
    error = {"message": message, "type": "NotFoundError", "param": "model", "code": 404}
    assert (response.status_code, response.json()) == (404, {"error": error})


def test_max_tokens_beyond_the_context(engine: RunningEngine) -> None:
    response = engine.chat("hi", max_tokens=4097)
    message = (
        "max_tokens=4097 cannot be greater than max_model_len=4096. "
        "Please request fewer output tokens."
    )
    assert (response.status_code, response.json()["error"]["message"]) == (400, message)
    assert engine.chat("hi [sim:tokens=1]", max_tokens=4096).status_code == 200


def test_prompt_beyond_the_context(engine: RunningEngine) -> None:
    response = engine.chat("a " * 5000, max_tokens=10)
    message = (
        "This model's maximum context length is 4096 tokens. However, you requested 10 output "
        "tokens and your prompt contains at least 5008 input tokens, for a total of at least "
        "5018 tokens. Please reduce the length of the input prompt or the number of requested "
        "output tokens."
    )
    assert (response.status_code, response.json()["error"]["message"]) == (400, message)


def test_prefix_is_cached_in_whole_blocks(engine: RunningEngine) -> None:
    prompt = "prefix " * 40
    before = engine.metric("vllm:prefix_cache_hits_total")
    cached = [
        engine.chat(prompt).json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        for _ in range(2)
    ]
    assert cached == [0, 80]
    assert engine.metric("vllm:prefix_cache_hits_total") - before == 80


def test_bare_completion(engine: RunningEngine) -> None:
    body = {"prompt": "Once upon [sim:tokens=2]", "max_tokens": 8}
    answer = engine.post("/v1/completions", **body).json()
    assert answer.pop("id").startswith("cmpl-")
    assert isinstance(answer.pop("created"), int)
    choice = {"index": 0, "text": "one two", "logprobs": None, "finish_reason": "stop"}
    more = {"stop_reason": None, "prompt_logprobs": None, "token_ids": None}
    assert answer == {
        "object": "text_completion",
        "model": "nan",
        "choices": [{**choice, **more}],
        "usage": {
            "prompt_tokens": 10,
            "total_tokens": 12,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }


def test_bare_completion_streamed(engine: RunningEngine) -> None:
    body = {"prompt": "[sim:tokens=2]", "stream": True, "stream_options": {"include_usage": True}}
    events = data_of(engine.post("/v1/completions", **body))
    assert [e["choices"][0]["text"] for e in events[:-2]] == ["one", " two", ""]
    assert [e["choices"][0]["finish_reason"] for e in events[:-2]] == [None, None, "stop"]
    assert (events[-2]["choices"], events[-2]["usage"]["completion_tokens"]) == ([], 2)
    assert events[-1] == "[DONE]"
