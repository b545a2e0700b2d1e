"""Routes, keys, names, answers, streams, errors and metrics of an engine that serves.

One module, so that real vLLM starts once for all of it.
"""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from inference.engine_metrics import read_metrics
from tests.contract.contenders import KEY, Running, data_of, event_names

RECORDED = Path(__file__).with_name("vllm_metrics.json")
ASK = [{"role": "user", "content": "hello"}]
SHORT: dict[str, Any] = {"max_tokens": 8, "temperature": 0, "ignore_eos": True}
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": ASK, "max_tokens": 8}),
    ("/v1/completions", {"prompt": "hello", "max_tokens": 8}),
    ("/v1/messages", {"model": "nan", "messages": ASK, "max_tokens": 8}),
    ("/v1/responses", {"input": "hello", "max_output_tokens": 8}),
]
USED = {
    f"vllm:{name}"
    for name in (
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "num_preemptions",
        "time_to_first_token_seconds",
        "inter_token_latency_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
        "prefix_cache_queries",
        "prefix_cache_hits",
        "prompt_tokens",
        "generation_tokens",
        "request_success",
        "admission_rejections",
        "engine_sleep_state",
        "cache_config_info",
    )
}
"""What the watcher, the alerts and the dashboards read."""
IDS = [path for path, _ in ROUTES]


@pytest.mark.parametrize("path", ["/health", "/ping", "/version", "/metrics"])
def test_open_without_a_key(engine: Running, path: str) -> None:
    assert httpx.get(f"{engine.http.base_url}{path}").status_code == 200


@pytest.mark.parametrize("path", ["/v1/models", "/v1/messages"])
def test_key_is_taken_as_bearer_only(engine: Running, path: str) -> None:
    for headers in ({}, {"x-api-key": KEY}, {"authorization": "Bearer wrong"}):
        assert httpx.get(f"{engine.http.base_url}{path}", headers=headers).status_code == 401


def test_models(engine: Running) -> None:
    cards = engine.http.get("/v1/models").json()["data"]
    assert [(card["id"], card["max_model_len"]) for card in cards] == [
        ("nan", 2048),
        ("tiny", 2048),
    ]


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=IDS)
def test_every_name_answers_as_the_first(engine: Running, path: str, body: dict[str, Any]) -> None:
    for name in ("nan", "tiny"):
        answer = engine.http.post(path, json={**body, "model": name})
        assert (answer.status_code, answer.json()["model"]) == (200, "nan")


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=IDS)
def test_unknown_name(engine: Running, path: str, body: dict[str, Any]) -> None:
    answer = engine.http.post(path, json={**body, "model": "other"})
    assert answer.status_code == 404
    assert {"message", "type"} <= answer.json()["error"].keys()
    assert "`other` does not exist" in answer.json()["error"]["message"]


def test_chat(engine: Running) -> None:
    answer = engine.chat("hello", **SHORT).json()
    [choice] = answer["choices"]
    assert answer["object"] == "chat.completion"
    assert (choice["message"]["role"], choice["finish_reason"]) == ("assistant", "length")
    assert isinstance(choice["message"]["content"], str)
    assert choice["message"]["reasoning"] is None
    usage = answer["usage"]
    assert (usage["completion_tokens"], usage["total_tokens"]) == (8, usage["prompt_tokens"] + 8)
    assert usage["prompt_tokens_details"].keys() >= {"cached_tokens"}


def test_chat_stream(engine: Running) -> None:
    """Role, deltas, finish, usage without choices, end."""
    asked = {"stream": True, "stream_options": {"include_usage": True}}
    response = engine.chat("hello", **SHORT, **asked)
    assert response.headers["content-type"].startswith("text/event-stream")
    *chunks, usage, done = data_of(response)
    assert done == "[DONE]"
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 8)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert {chunk["model"] for chunk in chunks} == {"nan"}
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["length"]


def test_completions(engine: Running) -> None:
    answer = engine.http.post("/v1/completions", json={"prompt": "hello", **SHORT}).json()
    assert answer["object"] == "text_completion"
    assert (answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]) == (
        "length",
        8,
    )


def test_messages(engine: Running) -> None:
    body = {"model": "nan", "messages": ASK, "max_tokens": 8, "temperature": 0}
    answer = engine.http.post("/v1/messages", json=body).json()
    assert (answer["type"], answer["role"], answer["stop_reason"]) == (
        "message",
        "assistant",
        "max_tokens",
    )
    assert [block["type"] for block in answer["content"]] == ["text"]
    assert answer["usage"]["output_tokens"] == 8
    counted = engine.http.post("/v1/messages/count_tokens", json=body).json()
    assert counted["input_tokens"] == answer["usage"]["input_tokens"]


def test_messages_stream(engine: Running) -> None:
    body = {"model": "nan", "messages": ASK, "max_tokens": 8, "temperature": 0, "stream": True}
    assert event_names(engine.http.post("/v1/messages", json=body)) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_responses(engine: Running) -> None:
    body = {"input": "hello", "max_output_tokens": 8, "temperature": 0}
    answer = engine.http.post("/v1/responses", json=body).json()
    assert (answer["object"], answer["status"]) == ("response", "incomplete")
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in answer["output"]] == ["message"]
    assert answer["usage"]["output_tokens"] == 8


def test_responses_stream(engine: Running) -> None:
    body = {"input": "hello", "max_output_tokens": 8, "temperature": 0, "stream": True}
    names = event_names(engine.http.post("/v1/responses", json=body))
    assert names == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": ASK, "max_tokens": -1}),
        ("/v1/chat/completions", {"messages": ASK, "max_tokens": 100_000}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 5000}]}),
        ("/v1/completions", {"prompt": "word " * 5000}),
    ],
)
def test_refused_bodies(engine: Running, path: str, body: dict[str, Any]) -> None:
    answer = engine.http.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (400, "BadRequestError", 400)


@pytest.mark.parametrize(
    ("path", "body", "missing"),
    [
        ("/v1/chat/completions", {"model": "nan"}, "messages"),
        ("/v1/messages", {"messages": ASK, "max_tokens": 8}, "model"),
        ("/v1/messages", {"model": "nan", "max_tokens": 8}, "messages"),
        ("/v1/messages/count_tokens", {"messages": ASK}, "model"),
        ("/v1/responses", {"model": "nan"}, "input"),
    ],
)
def test_missing_field(engine: Running, path: str, body: dict[str, Any], missing: str) -> None:
    """In one shape for all routes, and without a word of the body."""
    answer = engine.http.post(path, json=body)
    error = answer.json().pop("error")
    said = re.sub(r"<dict of \d items>", "<dict>", error.pop("message"))  # some routes add a field
    detail = f"'loc': 'body.{missing}', 'msg': 'Field required', 'input': '<dict>'"
    assert said == f"1 validation error:\n  {{'type': 'missing', {detail}}}"
    assert (answer.status_code, error) == (
        400,
        {"type": "Bad Request", "param": f"body.{missing}", "code": 400},
    )


def test_counts(engine: Running) -> None:
    before = read_metrics(engine.http.get("/metrics").text)
    usage = engine.chat("count this", **SHORT).json()["usage"]
    after = read_metrics(engine.http.get("/metrics").text)
    assert after.prompt_tokens - before.prompt_tokens == usage["prompt_tokens"]
    assert after.generated_tokens - before.generated_tokens == 8
    assert after.ttft.since(before.ttft).count == 1
    assert after.finished["length"] - before.finished["length"] == 1
    assert (after.running, after.waiting) == (0, 0)
    assert after.kv_tokens


def test_a_client_that_leaves_stops_the_work_uncounted(engine: Running) -> None:
    """Also not as `abort`: an error rate must not be built on that."""

    def ended() -> tuple[int, dict[str, float]]:
        metrics = read_metrics(engine.http.get("/metrics").text)
        return metrics.running, dict(metrics.finished)

    before = ended()
    body = {"messages": [{"role": "user", "content": "[sim:tokens=1900]"}], "stream": True}
    body |= {"max_tokens": 1900, "ignore_eos": True}
    with engine.http.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = response.iter_lines()
        next(lines)
        engine.until(lambda: ended()[0] == 1, seconds=5)
    engine.until(lambda: ended() == before, seconds=10)


def families(engine: Running) -> dict[str, dict[str, Any]]:
    """Type and label names of each of vLLM's metrics; the labels that describe the cache aside."""
    found = {}
    for family in text_string_to_metric_families(engine.http.get("/metrics").text):
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        if family.name.startswith("vllm:") and not family.name.endswith("_created"):
            kept = labels & {"engine", "kv_cache_size_tokens", "block_size", "num_gpu_blocks"}
            info = family.name == "vllm:cache_config_info"
            names = sorted(kept if info else labels)
            found[family.name] = {"type": family.type, "labels": names}
    return found


def test_metrics_are_those_of_vllm(engine: Running) -> None:
    """What the simulator counts has the name, type and labels recorded of vLLM 0.32.0."""
    engine.chat("hello", **SHORT)
    recorded, found = json.loads(RECORDED.read_text()), families(engine)
    if engine.contender.kind == "vllm":
        assert {name: found.get(name) for name in recorded} == recorded
    else:
        assert found == {name: recorded.get(name) for name in found}
    assert set() == USED - found.keys()


def test_metrics_carry_the_first_name(engine: Running) -> None:
    engine.chat("hello", model="tiny", **SHORT)
    families = text_string_to_metric_families(engine.http.get("/metrics").text)
    samples = [sample.labels for family in families for sample in family.samples]
    assert {labels["model_name"] for labels in samples if "model_name" in labels} == {"nan"}
