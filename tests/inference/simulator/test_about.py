"""Routes about the engine, keys, embeddings, metrics and wrong requests."""

import base64
import math
import struct

import httpx
import pytest

from tests.inference.simulator.engines import NO_THINKING, RunningEngine, running


@pytest.mark.parametrize("path", ["/health", "/ping"])
def test_alive(engine: RunningEngine, path: str) -> None:
    response = engine.http.get(path)
    assert (response.status_code, response.content) == (200, b"")


def test_version(engine: RunningEngine) -> None:
    assert engine.http.get("/version").json() == {"version": "0.32.0+simulator"}


def test_models_lists_every_name(engine: RunningEngine) -> None:
    listed = engine.http.get("/v1/models").json()
    assert listed["object"] == "list"
    for card in listed["data"]:
        assert isinstance(card.pop("created"), int)
    base = {"object": "model", "owned_by": "vllm", "root": "example/model", "parent": None}
    rest = {**base, "max_model_len": 4096, "permission": []}
    assert listed["data"] == [{"id": "nan", **rest}, {"id": "nan-sim-35b", **rest}]


def test_tokenize(engine: RunningEngine) -> None:
    answer = engine.post("/tokenize", prompt="hello world", return_token_strs=True).json()
    assert len(answer.pop("tokens")) == 2
    assert answer == {"count": 2, "max_model_len": 4096, "token_strs": ["hello", " world"]}
    chat = engine.post("/tokenize", messages=[{"role": "user", "content": "hi"}]).json()
    assert chat["count"] == engine.chat("hi", max_tokens=1).json()["usage"]["prompt_tokens"]
    quiet = engine.post("/tokenize", messages=[{"role": "user", "content": "hi"}], **NO_THINKING)
    assert quiet.json()["tokens"] != chat["tokens"]  # by which a model's switch is known


def test_embeddings(engine: RunningEngine) -> None:
    answer = engine.post("/v1/embeddings", input=["a", "b c", "a"]).json()
    vectors = [entry["embedding"] for entry in answer["data"]]
    assert vectors[0] == vectors[2] != vectors[1]
    assert [len(vector) for vector in vectors] == [384, 384, 384]
    assert math.isclose(math.hypot(*vectors[1]), 1)
    assert answer["usage"]["prompt_tokens"] == 4
    packed = engine.post("/v1/embeddings", input="a", encoding_format="base64", dimensions=4).json()
    assert len(struct.unpack("<4f", base64.b64decode(packed["data"][0]["embedding"]))) == 4


def test_keys_guard_v1_and_only_as_bearer(bare: RunningEngine) -> None:
    def status(path: str, **headers: str) -> int:
        return httpx.get(bare.url + path, headers=headers).status_code

    assert status("/v1/models", authorization="Bearer secret-one") == 200
    assert status("/v1/models", authorization="Bearer secret-two") == 200
    assert status("/v1/models", authorization="Bearer secret") == 401
    assert status("/v1/models", authorization="Basic secret-one") == 401
    assert status("/v1/models", **{"x-api-key": "secret-one"}) == 401
    assert status("/v1/nothing") == 401
    assert status("/health") == status("/metrics") == 200
    refused = httpx.post(bare.url + "/v1/messages", json={}, headers={"x-api-key": "secret-one"})
    assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})


def test_key_from_the_environment() -> None:
    with running(VLLM_API_KEY="secret") as engine:
        assert engine.http.get("/v1/models").status_code == 401
        bearer = {"authorization": "Bearer secret"}
        assert engine.http.get("/v1/models", headers=bearer).status_code == 200


def test_wrong_paths_methods_and_bodies(engine: RunningEngine) -> None:
    def told(method: str, path: str, **more: object) -> tuple[int, object]:
        response = engine.http.request(method, path, **more)
        return response.status_code, response.json()

    assert told("GET", "/v1/nothing") == (404, {"detail": "Not Found"})
    assert told("GET", "/v1/messages") == (405, {"detail": "Method Not Allowed"})
    json_type = {"content-type": "application/json"}
    status, body = told("POST", "/v1/chat/completions", content=b"{", headers=json_type)
    assert (status, body["error"]["message"]) == (400, "JSON decode error")
    status, _ = told("POST", "/v1/chat/completions", content=b"{}")
    assert status == 415
    status, body = told("POST", "/v1/chat/completions", json={"messages": 7})
    assert (status, body["error"]["message"]) == (400, "The request could not be read.")


def test_metrics_count_what_happened(engine: RunningEngine) -> None:
    names = (
        "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total",
        "vllm:request_success_total",
        "vllm:time_to_first_token_seconds_count",
        "vllm:inter_token_latency_seconds_count",
        "vllm:e2e_request_latency_seconds_count",
    )
    before = [engine.metric(name) for name in names]
    engine.chat("hi [sim:tokens=5]", **NO_THINKING)
    after = [engine.metric(name) for name in names]
    assert [b - a for a, b in zip(before, after, strict=True)] == [18, 5, 1, 1, 4, 1]


def test_metrics_carry_the_first_name(engine: RunningEngine) -> None:
    text = engine.http.get("/metrics").text
    assert 'vllm:num_requests_running{engine="0",model_name="nan"} 0.0' in text.splitlines()
    assert 'vllm:kv_cache_usage_perc{engine="0",model_name="nan"} 0.0' in text.splitlines()
    assert "nan-sim-35b" not in text
