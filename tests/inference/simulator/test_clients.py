"""The official packages as clients: what they make of our streams is what members will see."""

import json

import anthropic
import openai
import pytest

from tests.inference.simulator.engines import (
    ANSWER,
    CHAT_TOOL,
    MESSAGES_TOOL,
    RESPONSES_TOOL,
    THOUGHT,
    TOOL_INPUT,
    RunningEngine,
)

HELLO = [{"role": "user", "content": "hello"}]
USE_TOOL = [{"role": "user", "content": "use the tool"}]


@pytest.fixture
def openai_client(engine: RunningEngine) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{engine.url}/v1", api_key="any", max_retries=0)


@pytest.fixture
def anthropic_client(engine: RunningEngine) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=engine.url, api_key="any", max_retries=0)


def test_openai_chat(openai_client: openai.OpenAI) -> None:
    answer = openai_client.chat.completions.create(model="nan", messages=HELLO)
    assert answer.choices[0].message.content == ANSWER
    assert answer.choices[0].message.reasoning == THOUGHT
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 36


def test_openai_chat_stream(openai_client: openai.OpenAI) -> None:
    chunks = list(
        openai_client.chat.completions.create(
            model="nan", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks[:-1]]
    assert "".join(delta.content or "" for delta in deltas) == ANSWER
    assert "".join(getattr(delta, "reasoning", "") for delta in deltas) == THOUGHT
    assert chunks[-1].usage.completion_tokens == 36


def test_openai_chat_tools(openai_client: openai.OpenAI) -> None:
    arguments = {"model": "nan", "messages": USE_TOOL, "tools": [CHAT_TOOL]}
    plain = openai_client.chat.completions.create(**arguments)
    with openai_client.chat.completions.stream(**arguments) as stream:
        streamed = stream.get_final_completion()
    for answer in (plain, streamed):
        [call] = answer.choices[0].message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("weather", TOOL_INPUT)
        assert answer.choices[0].finish_reason == "tool_calls"


def test_openai_responses(openai_client: openai.OpenAI) -> None:
    plain = openai_client.responses.create(model="nan", input="hello")
    with openai_client.responses.stream(model="nan", input="hello") as stream:
        streamed = stream.get_final_response()
    for answer in (plain, streamed):
        assert answer.output_text == ANSWER
        assert answer.output[0].content[0].text == THOUGHT
        assert answer.usage.output_tokens == 36


def test_openai_responses_tools(openai_client: openai.OpenAI) -> None:
    arguments = {"model": "nan", "input": "use the tool", "tools": [RESPONSES_TOOL]}
    plain = openai_client.responses.create(**arguments)
    with openai_client.responses.stream(**arguments) as stream:
        streamed = stream.get_final_response()
    for answer in (plain, streamed):
        call = answer.output[-1]
        assert (call.name, json.loads(call.arguments)) == ("weather", TOOL_INPUT)


def test_openai_models_and_embeddings(openai_client: openai.OpenAI) -> None:
    assert [model.id for model in openai_client.models.list()] == ["nan", "nan-sim-35b"]
    embedded = openai_client.embeddings.create(model="nan", input=["a", "b"])
    assert [len(entry.embedding) for entry in embedded.data] == [384, 384]


def test_openai_error(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        openai_client.chat.completions.create(model="other", messages=HELLO)
    assert raised.value.body["param"] == "model"


def test_anthropic_messages(anthropic_client: anthropic.Anthropic) -> None:
    arguments = {"model": "nan", "max_tokens": 99, "messages": HELLO}
    plain = anthropic_client.messages.create(**arguments)
    with anthropic_client.messages.stream(**arguments) as stream:
        streamed = stream.get_final_message()
    for answer in (plain, streamed):
        thinking, text = answer.content
        assert (thinking.thinking, text.text) == (THOUGHT, ANSWER)
        assert (answer.stop_reason, answer.usage.output_tokens) == ("end_turn", 36)


def test_anthropic_tools(anthropic_client: anthropic.Anthropic) -> None:
    arguments = {"model": "nan", "max_tokens": 99, "messages": USE_TOOL, "tools": [MESSAGES_TOOL]}
    plain = anthropic_client.messages.create(**arguments)
    with anthropic_client.messages.stream(**arguments) as stream:
        streamed = stream.get_final_message()
    for answer in (plain, streamed):
        assert (answer.content[-1].name, answer.content[-1].input) == ("weather", TOOL_INPUT)
        assert answer.stop_reason == "tool_use"


def test_anthropic_count_tokens(anthropic_client: anthropic.Anthropic) -> None:
    assert anthropic_client.messages.count_tokens(model="nan", messages=HELLO).input_tokens == 8
