"""The engine behind the gateway: the simulator, or with ENGINE=vllm real vLLM on the CPU."""

import sys
from functools import partial
from pathlib import Path

from . import environment, ready
from .config import HOST, ROOT, Stack
from .part import Part

SIMULATED_MODEL = "nan-sim-35b"
SIMULATED_CONTEXT = 131_072
VLLM_CONTEXT = 8_192  # what a small model holds on a CPU
LONGEST_ANSWER = 32_768
VLLM_HOME = ROOT / ".nan" / "engine"


class EngineError(Exception):
    """The engine that was asked for isn't there; the text names the remedy."""


def engine(stack: Stack) -> Part:
    model = _model(stack)
    port = stack.ports["engine"]
    vllm = _kind(stack) == "vllm"
    return Part(
        name="engine",
        argv=[
            *(_vllm() if vllm else [sys.executable, "-m", "inference.simulator"]),
            *(model, "--served-model-name", _name(model), _public(stack)),
            *("--host", HOST, "--port", str(port), "--max-model-len", str(_context(stack))),
            *("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"),
            *("--reasoning-parser", "qwen3", "--shutdown-timeout", "5"),
        ],
        # Both read the key from here: an argument would be visible to everyone on the machine.
        env={**environment.inherited(stack), "VLLM_API_KEY": stack.engine_api_key},
        ready=partial(ready.http, f"{stack.engine_url}/health"),
        ready_seconds=240 if vllm else 30,
        stop_seconds=15,
        cwd=ROOT,
        port=port,
        url=stack.engine_url,
    )


def gateway_model(stack: Stack) -> dict[str, object]:
    """The engine as the gateway's configuration wants it: through the pool, by both names."""
    engine_name = _name(_model(stack))
    context = _context(stack)
    return {
        "names": list(dict.fromkeys([_public(stack), engine_name])),
        "engine_name": engine_name,
        "api_base": f"http://{HOST}:{stack.ports['pool']}/chat/v1",
        "max_input_tokens": context,
        "max_output_tokens": min(context, LONGEST_ANSWER),
        "api_key_env": "ENGINE_API_KEY",
    }


def _kind(stack: Stack) -> str:
    kind = stack.environ.get("ENGINE") or "simulator"
    if kind not in {"simulator", "vllm"}:
        raise EngineError(f"ENGINE={kind} is unknown. Use ENGINE=simulator or ENGINE=vllm.")
    return kind


def _vllm() -> list[str]:
    program = VLLM_HOME / "bin" / "vllm"
    if not program.exists():
        raise EngineError(
            f"ENGINE=vllm needs vLLM in {VLLM_HOME}, which is not installed. Install it there, "
            "or run with the simulator (leave ENGINE unset)."
        )
    return [str(program), "serve"]


def _model(stack: Stack) -> str:
    if model := stack.environ.get("ENGINE_MODEL"):
        return model
    if _kind(stack) == "vllm" and stack.embeds_engine:
        raise EngineError("ENGINE=vllm needs ENGINE_MODEL: a model's folder or repository.")
    return SIMULATED_MODEL


def _name(model: str) -> str:
    return Path(model).name


def _public(stack: Stack) -> str:
    return stack.environ.get("PUBLIC_MODEL") or "nan"


def _context(stack: Stack) -> int:
    default = SIMULATED_CONTEXT if _kind(stack) == "simulator" else VLLM_CONTEXT
    return int(stack.environ.get("ENGINE_MAX_MODEL_LEN") or default)
