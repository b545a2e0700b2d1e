"""How engines end: politely, with requests in flight, killed, and without their core."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.contract.contenders import EMBEDDING, Contender, Running, data_of
from tests.ports import free_port

TALKING = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/responses",
)
LENGTH = 12_000
"""Tokens of the long stream: longer on either engine than a busy machine may stand still."""
LONG: dict[str, Any] = {"max_tokens": LENGTH, "ignore_eos": True, "stream": True}


@pytest.fixture
def engine(contender: Contender, folder: Path) -> Iterator[Running]:
    words = ("--max-model-len", "16384", "--shutdown-timeout", "120")
    with contender.start(*words, folder=folder) as running:
        yield running.wait_healthy()


class Streaming(threading.Thread):
    """A client in the middle of a long stream."""

    def __init__(self, engine: Running) -> None:
        super().__init__(daemon=True)
        self._engine = engine
        self.begun = threading.Event()
        self.data: list[str] = []
        self.error: Exception | None = None
        self.start()
        assert self.begun.wait(30)

    def run(self) -> None:
        messages = [{"role": "user", "content": f"[sim:tokens={LENGTH}]"}]
        body = {"messages": messages, **LONG}
        try:
            with self._engine.http.stream("POST", "/v1/chat/completions", json=body) as response:
                for line in response.iter_lines():
                    self.begun.set()
                    self.data += [line[6:]] if line.startswith("data: ") else []
        except httpx.TransportError as error:
            self.error = error


def test_sigterm_drains_and_exits_0(engine: Running) -> None:
    """Meanwhile it looks healthy and refuses: so a pool has to stop sending before."""
    client = Streaming(engine)
    engine.terminate()
    engine.until(lambda: engine.chat("hi", max_tokens=1).status_code == 500, seconds=5)
    assert (engine.health(), client.is_alive()) == (200, True)
    client.join(130)
    assert (client.error, client.data[-1]) == (None, "[DONE]")
    assert engine.process.wait(20) == 0
    assert engine.others() == []


def test_sigkill_leaves_the_core(engine: Running) -> None:
    """The port is free, the memory is not: only the group's end is an end."""
    core = engine.core()
    engine.process.kill()
    engine.process.wait()
    time.sleep(1)
    assert core.is_running()
    assert engine.health() is None
    engine.kill_group()
    psutil.wait_procs([core], timeout=10)
    assert engine.others() == []


def test_death_of_the_core_ends_with_0(engine: Running) -> None:
    client = Streaming(engine)
    engine.core().kill()
    engine.until(lambda: engine.health() == 503, seconds=5)
    assert engine.process.wait(20) == 0
    client.join(10)
    assert client.data[-1] != "[DONE]" or "error" in client.data[-2]


def test_sigterm_at_the_start(contender: Contender, folder: Path) -> None:
    slow = {"SIM_LOAD_SECONDS": "20"}
    with contender.start(folder=folder, environment=slow) as running:
        time.sleep(2)
        running.terminate()
        assert running.process.wait(20) in (143, -signal.SIGTERM)


def test_embeddings(contender: Contender, folder: Path) -> None:
    with contender.start(model=EMBEDDING, folder=folder, port=free_port()) as running:
        running.wait_healthy()
        answer = running.http.post("/v1/embeddings", json={"input": ["one", "two"]}).json()
        assert (answer["object"], answer["model"]) == ("list", EMBEDDING)
        assert [len(entry["embedding"]) for entry in answer["data"]] == [384, 384]
        assert answer["usage"]["prompt_tokens"] > 0
        assert data_of(running.http.get("/health")) == []
        for route in TALKING:  # what it can't do, it has no route for
            answer = running.http.post(route, json={"model": EMBEDDING})
            assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


def test_a_chat_model_makes_no_embeddings(engine: Running) -> None:
    answer = engine.http.post("/v1/embeddings", json={"input": "one"})
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
