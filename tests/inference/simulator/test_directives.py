"""Directives in a prompt, and what must never be shown of a prompt."""

import time

import httpx
import pytest

from tests.inference.simulator.engines import NO_THINKING, PARSERS, RunningEngine, data_of, running


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_status(engine: RunningEngine, status: int) -> None:
    for stream in (False, True):
        response = engine.chat(f"[sim:status={status}]", stream=stream)
        assert response.status_code == status
        assert response.json()["error"]["message"] == "Simulated failure."


def test_sleep_comes_before_the_first_token(engine: RunningEngine) -> None:
    begun = time.monotonic()
    engine.chat("[sim:sleep=0.3][sim:tokens=1]", **NO_THINKING)
    assert 0.3 <= time.monotonic() - begun < 0.8


def test_tokens(engine: RunningEngine) -> None:
    answer = engine.chat("[sim:tokens=200]", **NO_THINKING).json()
    assert answer["usage"]["completion_tokens"] == 200


def test_only_the_last_user_message_counts(engine: RunningEngine) -> None:
    messages = [
        {"role": "user", "content": "[sim:status=500]"},
        {"role": "assistant", "content": "[sim:status=500]"},
        {"role": "user", "content": "go on"},
    ]
    assert engine.post("/v1/chat/completions", messages=messages).status_code == 200


def test_echo_error_repeats_the_prompt(engine: RunningEngine) -> None:
    response = engine.chat("my-canary-words [sim:echo-error]")
    assert response.status_code == 400
    assert "my-canary-words" in response.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_die_midstream(engine: RunningEngine, path: str) -> None:
    messages = [{"role": "user", "content": "[sim:tokens=10][sim:die-midstream]"}]
    body = {"model": "nan", "messages": messages, "max_tokens": 50, **NO_THINKING}
    received: list[bytes] = []
    with engine.http.stream("POST", path, json={**body, "stream": True}) as response:
        chunks = response.iter_bytes()
        with pytest.raises(httpx.RemoteProtocolError):
            received.extend(chunks)
    assert b"five" in b"".join(received)
    assert b"six" not in b"".join(received)
    with pytest.raises(httpx.RemoteProtocolError):
        engine.post(path, **body)


def test_nothing_of_a_prompt_is_printed_or_counted() -> None:
    with running(*PARSERS) as engine:
        for directive in ("", "[sim:echo-error]", "[sim:die-midstream]", "[sim:status=500]"):
            try:
                engine.chat(f"canary-prompt {directive}")
            except httpx.RemoteProtocolError:
                continue
        engine.post("/v1/chat/completions", messages="canary-prompt")
        engine.http.post("/v1/messages", content=b'{"canary-prompt', headers={"x-name": "canary"})
        shown = engine.http.get("/metrics").text + engine.http.get("/_sim/requests").text
        counters = engine.counters()
        engine.terminate()
        out, err = engine.process.communicate(timeout=5)
    assert "canary" not in shown + out + err
    assert "simulated engine" not in out + err
    assert counters["prompts_seen"] == 2
    assert counters["cut"] == 1
    assert "x-name" in counters["last_header_names"]


def test_stream_is_paced() -> None:
    with running(SIM_TTFT_MS="200", SIM_TOKENS_PER_SECOND="50") as engine:
        begun = time.monotonic()
        response = engine.chat("[sim:tokens=11]", stream=True)
        took = time.monotonic() - begun
    assert len(data_of(response)) == 1 + 11 + 1 + 1
    assert 0.4 <= took < 0.9


def test_an_engine_can_be_told_to_misbehave_after_it_was_checked(engine: RunningEngine) -> None:
    assert engine.chat("hello").json()["choices"][0]["message"]["content"]
    for faults, empty in ((["empty-content"], True), ([], False)):
        assert engine.http.post("/_sim/faults", json=faults).status_code == 200
        answer = engine.chat("hello").json()["choices"][0]["message"]["content"]
        assert (answer in ("", None)) is empty
