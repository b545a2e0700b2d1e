"""Start, refusal and exit of the whole process, and its faults."""

import signal
import threading
import time
from typing import Any

import httpx
import pytest

from tests.inference.simulator.engines import (
    CHAT_TOOL,
    NO_THINKING,
    PARSERS,
    THOUGHT,
    RunningEngine,
    data_of,
    end_of,
    eventually,
    free_port,
    running,
    spawn,
)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--swap-space", "4"], 2, "unrecognized arguments: --swap-space"),
        (
            ["--speculative-config", "{x"],
            2,
            "argument --speculative-config/-sc: Value {x cannot be",
        ),
        (
            ["--enable-auto-tool-choice", "--tool-call-parser", "none-such"],
            1,
            "invalid tool call parser: none-such",
        ),
        (["--reasoning-parser", "none-such"], 1, "Reasoning parser 'none-such' not found"),
        (["--enable-auto-tool-choice"], 1, "--enable-auto-tool-choice requires --tool-call-parser"),
        (["--max-model-len", "256k"], 1, "max_model_len (256000) is greater than the derived"),
    ],
)
def test_refusals(arguments: list[str], status: int, text: str) -> None:
    ended, err = end_of(spawn(*arguments))
    assert ended == status
    assert text in err


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"SIM_FAULTS": "refuse-start"}, "invalid tool call parser"),
        ({"SIM_FAULTS": "die-after-loading"}, "estimated maximum model length is 65536"),
        ({"SIM_KV_CACHE_TOKENS": "9000"}, "estimated maximum model length is 9000"),
        ({"SIM_FAULTS": "no-such-fault"}, "SIM_FAULTS: unknown ['no-such-fault']"),
        ({"SIM_TTFT_MS": "soon"}, "SIM_TTFT_MS must be a number, got 'soon'"),
    ],
)
def test_refusals_from_the_environment(environment: dict[str, str], text: str) -> None:
    ended, err = end_of(spawn(**environment))
    assert ended == 1
    assert text in err


def test_port_busy(engine: RunningEngine) -> None:
    ended, err = end_of(spawn(port=engine.port))
    assert (ended, "Address already in use" in err) == (1, True)


def test_serve_word_underscores_and_every_kind_of_flag() -> None:
    port = free_port()
    flags = ["--max_model_len", "8k", "--no-enable-prefix-caching", "-tp", "2", "--enforce-eager"]
    process = spawn(
        *flags,
        "--trust-remote-code",
        "--limit-mm-per-prompt",
        '{"image": 1}',
        "--kv-cache-dtype=fp8",
        port=port,
    )
    engine = RunningEngine(process, port)
    try:
        engine.wait_ready()
        [card] = engine.http.get("/v1/models").json()["data"]
        assert (card["id"], card["max_model_len"]) == ("example/model", 8000)
    finally:
        process.kill()
        process.communicate()


def test_port_opens_after_loading() -> None:
    port = free_port()
    process = spawn(port=port, SIM_LOAD_SECONDS="1")
    engine = RunningEngine(process, port)
    try:
        assert "Loading" in (process.stdout.readline() if process.stdout else "")
        begun = time.monotonic()
        with pytest.raises(httpx.ConnectError):
            engine.http.get("/health")
        engine.wait_ready()
        assert 0.8 < time.monotonic() - begun < 3
    finally:
        process.kill()
        process.communicate()


def test_sigterm_while_loading_exits_143() -> None:
    process = spawn(SIM_LOAD_SECONDS="30")
    assert "Loading" in (process.stdout.readline() if process.stdout else "")
    process.send_signal(signal.SIGTERM)
    assert end_of(process)[0] == 143


def test_sigterm_idle_exits_0_at_once() -> None:
    with running() as engine:
        engine.http.close()
        begun = time.monotonic()
        engine.terminate()
        assert engine.process.wait(5) == 0
        assert time.monotonic() - begun < 1


class Streaming(threading.Thread):
    """A client that reads one stream to its end."""

    def __init__(self, engine: RunningEngine, prompt: str) -> None:
        super().__init__()
        self._engine, self._prompt = engine, prompt
        self.events: list[Any] = []
        self.error: Exception | None = None
        self.start()
        eventually(lambda: engine.metric("vllm:num_requests_running") == 1)

    def run(self) -> None:
        try:
            self.events = data_of(self._engine.chat(self._prompt, stream=True))
        except httpx.TransportError as error:
            self.error = error


def test_sigterm_cuts_streams_by_default() -> None:
    with running() as engine:
        client = Streaming(engine, "[sim:tokens=100000]")
        engine.terminate()
        assert engine.process.wait(2) == 0
        client.join(2)
        assert isinstance(client.error, httpx.RemoteProtocolError)


def test_sigterm_with_shutdown_timeout_drains() -> None:
    with running("--shutdown-timeout", "20") as engine:
        client = Streaming(engine, "[sim:tokens=2000]")
        engine.terminate()
        eventually(lambda: engine.chat("hi").status_code == 500)
        assert engine.http.get("/health").status_code == 200
        message = "EngineCore encountered an issue. See stack trace for the root cause."
        for path in ("/v1/messages/count_tokens", "/v1/messages"):
            body = {
                "messages": [{"role": "user", "content": "hi"}],
                "max_tokens": 5,
                "model": "nan",
            }
            assert engine.post(path, **body).json()["error"]["message"] == message
        client.join(5)
        assert (client.error, client.events[-1]) == (None, "[DONE]")
        assert engine.process.wait(2) == 0


def test_shutdown_timeout_ends() -> None:
    with running("--shutdown-timeout", "1") as engine:
        client = Streaming(engine, "[sim:hang]")
        begun = time.monotonic()
        engine.terminate()
        assert engine.process.wait(4) == 0
        assert time.monotonic() - begun >= 1
        client.join(2)
        assert client.error is not None


def test_sigterm_ignored() -> None:
    with running(SIM_FAULTS="ignore-sigterm") as engine:
        engine.terminate()
        time.sleep(0.3)
        assert engine.chat("hi").status_code == 200
        assert engine.process.poll() is None


def test_sigterm_half_dead() -> None:
    with running(SIM_FAULTS="half-dead-on-sigterm") as engine:
        client = Streaming(engine, "[sim:tokens=100000]")
        engine.terminate()

        def closed() -> bool:
            try:
                return not httpx.get(engine.url + "/health", timeout=1)
            except httpx.TransportError:
                return True

        eventually(closed)
        time.sleep(0.3)
        assert engine.process.poll() is None
        assert client.is_alive()
        engine.process.kill()
        client.join(2)


def test_sigterm_half_dead_without_clients() -> None:
    with running(SIM_FAULTS="half-dead-on-sigterm") as engine:
        engine.terminate()
        time.sleep(0.3)
        engine.terminate()
        with pytest.raises(httpx.TransportError):
            httpx.get(engine.url + "/health", timeout=1)
        assert engine.process.poll() is None


def test_sigterm_ignored_while_loading() -> None:
    process = spawn(SIM_FAULTS="ignore-sigterm", SIM_LOAD_SECONDS="30")
    assert "Loading" in (process.stdout.readline() if process.stdout else "")
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert process.poll() is None
    process.kill()
    process.communicate()


def test_hangs_while_healthy() -> None:
    with running(SIM_FAULTS="hang") as engine:
        assert engine.http.get("/health").status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(engine.url + "/v1/completions", json={"prompt": "x"}, timeout=0.3)


def test_faults_of_the_answer() -> None:
    with running(
        *PARSERS, SIM_FAULTS="think-in-content,lose-tool-calls,stream-only-hang"
    ) as engine:
        message = engine.chat("use the tool", tools=[CHAT_TOOL]).json()["choices"][0]["message"]
        assert message["content"] == f"{THOUGHT}\n</think>\n\nI will call the tool now."
        assert (message["reasoning"], message["tool_calls"]) == (None, [])
        body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(engine.url + "/v1/chat/completions", json=body, timeout=0.3)


def test_empty_content() -> None:
    with running(SIM_FAULTS="empty-content") as engine:
        answer = engine.chat("hi", **NO_THINKING).json()
        assert answer["choices"][0]["message"]["content"] == ""
        events = data_of(engine.chat("hi", stream=True))
        assert [e["choices"][0]["delta"] for e in events[:-1]] == [
            {"role": "assistant", "content": ""},
            {"content": ""},
        ]
