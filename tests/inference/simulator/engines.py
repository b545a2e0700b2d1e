"""Real simulator processes on free loopback ports."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.ports import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("--served-model-name", "nan", "nan-sim-35b")
PARSERS = (
    "--enable-auto-tool-choice",
    "--tool-call-parser",
    "hermes",
    "--reasoning-parser",
    "qwen3",
)
QUICK = {"SIM_TTFT_MS": "5", "SIM_TOKENS_PER_SECOND": "2000"}


def spawn(
    *arguments: str, port: int | None = None, model: str = "example/model", **environment: str
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "inference.simulator", model]
    where = ["--host", "127.0.0.1", "--port", str(port or free_port())]
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("SIM_", "VLLM_"))
    }
    return subprocess.Popen(
        [*command, *where, *arguments],
        cwd=ROOT,
        env={**clean, **QUICK, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and stderr of a process that should end by itself; it is never left behind."""
    try:
        _, err = process.communicate(timeout=10)
    finally:
        kill_group(process)
    return process.returncode, err


def metric(engine: httpx.Client, name: str) -> float:
    """The sum over all label sets of one of its metrics."""
    lines = engine.get("/metrics").text.splitlines()
    found = [line for line in lines if line.split("{")[0] == name]
    assert found, name
    return sum(float(line.rpartition(" ")[2]) for line in found)


class RunningEngine:
    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.url, timeout=10)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def chat(self, prompt: str, **body: Any) -> httpx.Response:
        messages = [{"role": "user", "content": prompt}]
        return self.post("/v1/chat/completions", messages=messages, **body)

    def counters(self) -> dict[str, Any]:
        return dict(self.http.get("/_sim/requests").json())

    def metric(self, name: str) -> float:
        return metric(self.http, name)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait_ready(self, seconds: float = 10) -> None:
        def healthy() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            try:
                return self.http.get("/health").status_code == 200
            except httpx.TransportError:
                return False

        eventually(healthy, seconds=seconds)


eventually = partial(wait_until, seconds=2, every=0.01)


@contextmanager
def running(
    *arguments: str, port: int | None = None, **environment: str
) -> Iterator[RunningEngine]:
    port = port or free_port()
    process = spawn(*NAMES, *arguments, port=port, **environment)
    engine = RunningEngine(process, port)
    try:
        engine.wait_ready()
        yield engine
    finally:
        engine.http.close()
        kill_group(process)
        process.communicate()


def kill_group(process: subprocess.Popen[str]) -> None:
    """With a core that may have outlived it: that holds the pipes that are read to the end."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def data_of(response: httpx.Response) -> list[Any]:
    """The payloads of a stream, `[DONE]` as it is."""
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def event_names(response: httpx.Response) -> list[str]:
    return [line[7:] for line in response.text.splitlines() if line.startswith("event: ")]


TOOL_SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 2},
        "note": {"type": "string"},
    },
    "required": ["city", "days"],
}
TOOL_INPUT = {"city": "example", "days": 2}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "parameters": TOOL_SCHEMA}}
MESSAGES_TOOL = {"name": "weather", "input_schema": TOOL_SCHEMA}
RESPONSES_TOOL = {"type": "function", "name": "weather", "parameters": TOOL_SCHEMA}
ANSWER = "This is the simulated engine. It has no model, so every answer is this one sentence."
THOUGHT = "The user wants an answer. A short one will do."
NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
