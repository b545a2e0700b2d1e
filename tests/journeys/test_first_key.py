"""From the first visit to an answered call: the main journey, through real parts."""

import subprocess

import anthropic
import httpx
import openai
import pytest

from tests.api import ROUTES, ApiClient
from tests.stack import Stack
from tests.visitor import Visitor


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    visitor = Visitor(stack).sign_up()
    assert "What do you build?" in visitor.get("/waitlist/")
    visitor.apply()
    page = visitor.get("/waitlist/")
    assert "among the next" in page
    visitor.be_let_in()
    assert "Create my key" in visitor.get("/key/")
    return visitor.create_key()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_each_route_answers(stack: Stack, key: str, route: str, stream: bool) -> None:
    answer = ApiClient(stack.api, key).call(route, "reply with exactly: hola", stream=stream)
    assert answer.status_code == 200, answer.text
    assert "hola" in answer.text


def test_a_model_asked_for_what_it_is_not_says_where_it_answers(stack: Stack, key: str) -> None:
    def embed(model: str) -> httpx.Response:
        client = ApiClient(stack.api, key)
        body = {"model": model, "input": "hi"}
        return httpx.post(
            f"{stack.api}/v1/embeddings", json=body, headers=client.headers, timeout=client.timeout
        )

    for answer in (ApiClient(stack.api, key, model="nan-embed").call(), embed("nan")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "wrong_api")
    assert embed("nan-embed").status_code == 200


def test_models_lists_the_public_name(stack: Stack, key: str) -> None:
    listed = ApiClient(stack.api, key).models().json()
    assert "nan" in [model["id"] for model in listed["data"]]


def test_curl(stack: Stack, key: str) -> None:
    run = subprocess.run(
        [
            *("curl", "-sS", "-N", "--max-time", "30", f"{stack.api}/v1/chat/completions"),
            *("-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json"),
            *("-d", '{"model":"nan","stream":true,"messages":[{"role":"user","content":"hi"}]}'),
        ],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.rstrip().endswith("data: [DONE]")


def test_openai_package(stack: Stack, key: str) -> None:
    client = openai.OpenAI(base_url=f"{stack.api}/v1", api_key=key)
    said = [{"role": "user", "content": "reply with exactly: hola"}]
    whole = client.chat.completions.create(model="nan", messages=said)
    assert whole.choices[0].message.content == "hola"
    parts = client.chat.completions.create(model="nan", messages=said, stream=True)
    assert "".join(p.choices[0].delta.content or "" for p in parts if p.choices) == "hola"
    assert (
        client.responses.create(model="nan", input="reply with exactly: hola").output_text == "hola"
    )


def test_anthropic_package(stack: Stack, key: str) -> None:
    client = anthropic.Anthropic(base_url=stack.api, auth_token=key, api_key=None)
    said = [{"role": "user", "content": "reply with exactly: hola"}]
    whole = client.messages.create(model="nan", max_tokens=32, messages=said)
    assert [block.text for block in whole.content if block.type == "text"] == ["hola"]
    with client.messages.stream(model="nan", max_tokens=32, messages=said) as stream:
        assert "".join(stream.text_stream) == "hola"
    assert client.messages.count_tokens(model="nan", messages=said).input_tokens > 0
