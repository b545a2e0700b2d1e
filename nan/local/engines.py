"""The engine behind the gateway: the simulator, or with ENGINE=vllm real vLLM on the CPU."""

import sys
from functools import partial
from pathlib import Path

from . import environment, ready
from .config import HOST, ROOT, Stack
from .part import Part

SIMULATED_MODEL = "nan-sim-35b"
VLLM_HOME = ROOT / ".nan" / "engine"


class EngineProblem(Exception):
    """The engine that was asked for isn't there; the text names the remedy."""


def engine(stack: Stack) -> Part:
    kind = stack.environ.get("ENGINE", "simulator")
    if kind == "simulator":
        return _part(stack, command=[sys.executable, "-m", "inference.simulator"], seconds=30)
    if kind == "vllm":
        return _part(stack, command=[*_vllm()], seconds=180)
    raise EngineProblem(f"ENGINE={kind} is unknown. Use ENGINE=simulator or ENGINE=vllm.")


def _part(stack: Stack, *, command: list[str], seconds: float) -> Part:
    """Both take vLLM's flags, and the key from the environment: arguments are public."""
    model = stack.environ.get("ENGINE_MODEL") or SIMULATED_MODEL
    public = stack.environ.get("PUBLIC_MODEL") or "nan"
    port = stack.ports["engine"]
    return Part(
        name="engine",
        argv=[
            *(*command, "--model", model, "--served-model-name", Path(model).name, public),
            *("--host", HOST, "--port", str(port)),
            *("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"),
            *("--reasoning-parser", "qwen3"),
        ],
        env={**environment.inherited(stack), "VLLM_API_KEY": stack.engine_api_key},
        ready=partial(ready.http, f"{stack.engine_url}/health"),
        ready_seconds=seconds,
        stop_seconds=10,
        cwd=ROOT,
        port=port,
        url=stack.engine_url,
    )


def _vllm() -> list[str]:
    """`vllm serve` takes the model as its first argument or as --model."""
    program = VLLM_HOME / "bin" / "vllm"
    if not program.exists():
        raise EngineProblem(
            f"ENGINE=vllm needs vLLM in {VLLM_HOME}, which is not installed. Install it there, "
            "or run with the simulator (leave ENGINE unset)."
        )
    return [str(program), "serve"]
