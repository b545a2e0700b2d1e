"""The two engines that must not differ: the simulator and vLLM, each as processes on loopback.

Both get the same flags and find the same models offline in a hub's cache; the simulator's are made
up. vLLM is the one that `make test-vllm` installs.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
VLLM_HOME = Path(os.environ.get("NAN_ENGINE_HOME", ROOT / ".nan" / "engine"))
VLLM_MODELS = Path(os.environ.get("NAN_ENGINE_MODELS", ROOT / ".nan" / "engine-models"))
CONTEXT = 32_768
"""Of the small chat model itself."""
KEY = "contract-key"
_CLEANED = ("SIM_", "VLLM_", "HF_", "CUDA_", "PYTHONDONTWRITEBYTECODE")


def _models() -> dict[str, str]:
    listed = subprocess.run(
        [sys.executable, ROOT / "deploy/engine/models.py", "--list"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {model["repo"]: model["revision"] for model in json.loads(listed)}


MODELS = _models()
CHAT, EMBEDDING = "nan-local/tiny-qwen3", "nan-local/all-minilm-l6-v2"
SPEAKING = "nan-local/smollm2-135m-instruct"
"""The other chat model's weights are random."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    kind: str
    command: tuple[str, ...]
    check: tuple[str, ...]
    hf_home: Path
    flags: tuple[str, ...] = ()
    """What a start needs on this machine, whatever is tested."""
    short_of_memory: tuple[str, ...] = ()
    """Flags with which one request of full length does not fit."""
    environment: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = 15

    def start(self, *words: str, model: str = CHAT, **more: Any) -> "Running":
        return Running(self, (model, "--revision", MODELS.get(model, "0" * 40), *words), **more)

    def verdicts(self, *words: str, model: str = CHAT) -> dict[str, str]:
        """Code by name of check; empty where it is content."""
        argv = [model, "--revision", MODELS.get(model, "0" * 40), *words, *self.flags]
        answer = subprocess.run(
            self.check,
            input=json.dumps({"argv": argv, "model_path": None}),
            env=self.environ(),
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return {verdict["name"]: verdict["code"] for verdict in json.loads(answer)}

    def environ(self) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(_CLEANED)}
        hub = {"HF_HOME": str(self.hf_home), "HF_HUB_OFFLINE": "1"}
        return {**clean, **hub, "VLLM_NO_USAGE_STATS": "1", **self.environment}


def simulator(folder: Path) -> Contender:
    weights = (sys.executable, "-m", "inference.simulator.weights")
    for repo, context in ((CHAT, CONTEXT), (EMBEDDING, 512), (SPEAKING, 8192)):
        config = folder / "config.json"
        kind = "BertModel" if repo == EMBEDDING else "Qwen3ForCausalLM"
        told = {"max_position_embeddings": context, "architectures": [kind]}
        config.write_text(json.dumps(told))
        subprocess.run(
            [*weights, repo, MODELS[repo], "--config", str(config)],
            env={**os.environ, "HF_HOME": str(folder)},
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return Contender(
        kind="simulator",
        command=(sys.executable, "-m", "inference.simulator", "serve"),
        check=(sys.executable, "-m", "inference.simulator.check"),
        hf_home=folder,
        environment={
            "SIM_ENGINE_CORE": "1",
            "SIM_KV_CACHE_TOKENS": "131072",
            "SIM_TOKENS_PER_SECOND": "2000",
        },
        short_of_memory=("--max-model-len", str(CONTEXT)),
    )


def vllm() -> Contender:
    small = ("--dtype", "float32", "--enforce-eager", "--max-num-seqs", "8")
    return Contender(
        kind="vllm",
        command=(str(VLLM_HOME / "bin" / "vllm"), "serve"),
        check=(str(VLLM_HOME / "bin" / "python"), str(ROOT / "deploy/engine/check.py")),
        hf_home=VLLM_MODELS,
        flags=(*small, "--kv-cache-memory-bytes", "64M"),
        short_of_memory=("--max-model-len", str(CONTEXT), "--kv-cache-memory-bytes", "1M"),
        start_seconds=240,
    )


class Running:
    """One started engine in a session of its own, its output in a file."""

    def __init__(
        self,
        contender: Contender,
        words: tuple[str, ...],
        *,
        folder: Path,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.contender, self.port = contender, port or free_port()
        self.log = folder / f"engine-{self.port}-{time.monotonic_ns()}.log"
        where = ("--host", "127.0.0.1", "--port", str(self.port))
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                [*contender.command, *words[:1], *contender.flags, *words[1:], *where],
                env={**contender.environ(), "VLLM_API_KEY": KEY, **(environment or {})},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"authorization": f"Bearer {KEY}"},
            timeout=60,
        )

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self.kill_group()
        self.process.wait()

    def wait_healthy(self) -> "Running":
        self.until(lambda: self.health() == 200, seconds=self.contender.start_seconds)
        return self

    def until(self, condition: Any, *, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.output()[-3000:]
            assert time.monotonic() < deadline, self.output()[-3000:]
            time.sleep(0.05)

    def health(self) -> int | None:
        """None where nobody listens."""
        try:
            return httpx.get(f"{self.http.base_url}/health", timeout=5).status_code
        except httpx.TransportError:
            return None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def chat(self, text: str, **body: Any) -> httpx.Response:
        messages = [{"role": "user", "content": text}]
        return self.http.post("/v1/chat/completions", json={"messages": messages, **body})

    def others(self) -> list[psutil.Process]:
        """Living processes of the group but the first."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, ProcessLookupError):
                mine = os.getpgid(process.pid) == self.process.pid
                if mine and process.pid != self.process.pid and process.status() != "zombie":
                    found.append(process)
        return found

    def core(self) -> psutil.Process:
        [core] = [each for each in self.others() if each.name().startswith("VLLM::EngineCor")]
        return core

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def data_of(response: httpx.Response) -> list[Any]:
    """The payloads of a stream, `[DONE]` as it is."""
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def event_names(response: httpx.Response) -> list[str]:
    """Repeats of the same name count once."""
    names = [line[7:] for line in response.text.splitlines() if line.startswith("event: ")]
    return [name for name, before in zip(names, ["", *names], strict=False) if name != before]
