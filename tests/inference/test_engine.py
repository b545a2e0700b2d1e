"""The client of one engine: against the simulator as a process, and against bad manners."""

import time
from pathlib import Path

import httpx
import pytest

from inference.engine import Engine, EngineUnavailable, ServedModel
from inference.engine_metrics import Histogram, read_metrics
from tests.fakes.engine import Manners, engine_with
from tests.inference.simulator.engines import PARSERS, running
from tests.ports import free_port

CHAT = {"model": "nan", "messages": [{"role": "user", "content": "reply with exactly: yes"}]}
RECORDED = Path(__file__).parent / "engine_metrics.txt"


def code_of(error: pytest.ExceptionInfo[EngineUnavailable]) -> tuple[str, int | None]:
    return error.value.code, error.value.status


def test_what_an_engine_says_of_itself() -> None:
    with running(*PARSERS, "--max-model-len", "4096", "--api-key", "k") as process:
        with Engine(process.url, "k") as engine:
            assert engine.healthy()
            assert engine.version().endswith("+simulator")
            served = [ServedModel(name=name, context=4096) for name in ("nan", "nan-sim-35b")]
            assert engine.models() == tuple(served)
            answer = engine.ask("/v1/chat/completions", CHAT, seconds=5)
            assert answer["choices"][0]["message"]["content"] == "yes"
            metrics = engine.metrics()
        with Engine(process.url, "other") as stranger:
            with pytest.raises(EngineUnavailable) as error:
                stranger.models()
            assert code_of(error) == ("not_admitted", 401)
    assert (metrics.running, metrics.waiting, metrics.in_flight) == (0, 0, 0)
    assert metrics.finished["stop"] == 1
    assert (metrics.ttft.count, metrics.errors, metrics.kv_usage) == (1, 0, 0)
    assert metrics.kv_tokens == 1_048_576
    assert (metrics.prefix_queries, metrics.drafted) == (metrics.prompt_tokens, None)
    assert metrics.generated_tokens > 0


def test_events_of_a_stream() -> None:
    with running(*PARSERS) as process, Engine(process.url) as engine:
        events = list(engine.stream("/v1/messages", {**CHAT, "max_tokens": 99}, seconds=5))
    assert events[0].name == "message_start"
    assert events[0].data is not None
    assert events[0].data["type"] == "message_start"
    assert events[-1].data is None  # [DONE]
    assert [event.after for event in events] == sorted(event.after for event in events)


def test_metrics_recorded_from_vllm() -> None:
    """A scrape of vLLM 0.32.0 on a CPU, the engine's part of it."""
    metrics = read_metrics(RECORDED.read_text())
    assert metrics.kv_tokens == 2_097_152
    assert metrics.finished == {"stop": 0, "length": 6, "abort": 0, "error": 0, "repetition": 0}
    assert (metrics.ttft.count, round(metrics.ttft.sum, 3)) == (6, 0.084)
    assert (metrics.prompt_tokens, metrics.generated_tokens) == (69, 27)
    assert (metrics.prefix_queries, metrics.prefix_hits) == (69, 0)
    assert metrics.ttft.quantile(0.5) == 0.02
    assert metrics.ttft.quantile(0.95) == 0.04


@pytest.mark.parametrize("text", ["<html>", "", "other_metric 1.0\n", "vllm:x{"])
def test_no_metrics_of_an_engine(text: str) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    with pytest.raises(EngineUnavailable) as error:
        Engine("http://engine", transport=transport).metrics()
    assert code_of(error) == ("unreadable", None)


def test_a_histogram_since_an_earlier_one() -> None:
    earlier = Histogram(sum=10, count=4, buckets={1.0: 2, 5.0: 4})
    later = Histogram(sum=13, count=6, buckets={1.0: 3, 5.0: 6})
    assert later.since(earlier) == Histogram(sum=3, count=2, buckets={1.0: 1, 5.0: 2})
    assert later.since(earlier).mean() == 1.5
    assert earlier.since(later) == earlier  # started again
    assert (Histogram().mean(), Histogram().quantile(0.5)) == (None, None)


def test_nobody_listens() -> None:
    with Engine(f"http://127.0.0.1:{free_port()}") as engine:
        assert not engine.healthy()
        with pytest.raises(EngineUnavailable) as error:
            engine.ask("/v1/chat/completions", CHAT, seconds=1)
    assert code_of(error) == ("unreachable", None)


@pytest.mark.parametrize("faults", ["hang", "stream-only-hang"])
def test_silence_ends_at_the_deadline(faults: str) -> None:
    with running(SIM_FAULTS=faults) as process, Engine(process.url) as engine:
        began = time.monotonic()
        with pytest.raises(EngineUnavailable) as error:
            list(engine.stream("/v1/chat/completions", CHAT, seconds=0.5))
        assert code_of(error) == ("timeout", None)
        assert 0.4 < time.monotonic() - began < 1.0


def test_bytes_now_and_then_do_not_move_the_deadline() -> None:
    def drip(manners: Manners) -> None:
        manners.drip = 0.05

    with engine_with(drip) as url, Engine(url) as engine:
        began = time.monotonic()
        with pytest.raises(EngineUnavailable) as error:
            engine.ask("/v1/chat/completions", CHAT, seconds=0.5)
        assert code_of(error) == ("timeout", None)
        assert 0.4 < time.monotonic() - began < 1.0


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "refused"), (403, "not_admitted"), (404, "not_found"), (503, "server_error")],
)
def test_each_status_has_its_code_and_no_body(status: int, code: str) -> None:
    def fail(manners: Manners) -> None:
        manners.status, manners.chat = status, b'{"error": "the prompt was: secret"}'

    with engine_with(fail) as url, Engine(url) as engine, pytest.raises(EngineUnavailable) as error:
        engine.ask("/v1/chat/completions", CHAT, seconds=2)
    assert code_of(error) == (code, status)
    assert "secret" not in repr(error.value)
    assert error.value.__cause__ is None


def test_a_stream_that_is_left_early_is_closed() -> None:
    """The engine sees us go: its work for us ends."""
    with running(SIM_TOKENS_PER_SECOND="5") as process, Engine(process.url) as engine:
        body = {"model": "nan", "messages": [{"role": "user", "content": "[sim:tokens=100]"}]}
        events = engine.stream("/v1/chat/completions", body, seconds=9)
        assert next(events).data is not None
        events.close()
        time.sleep(0.3)
        assert engine.metrics().running == 0
