"""This machine as a GPU server: its worker, which starts the engines, and what is to run first.

Engines are simulated unless ENGINE=vllm asks for real vLLM on the CPU. ENGINE=none starts no
worker here: then GPU servers join from elsewhere (/staff/servers/).
"""

import secrets
import shutil
import sys
from pathlib import Path

from . import environment
from .config import HOST, ROOT, Stack
from .part import Part
from .workers import worker

PYTHON = sys.executable
KINDS = ("simulator", "vllm", "none")
SERVER = "local"
SEATS = "50"
VLLM_HOME = ROOT / ".nan" / "engine"
VLLM_MODELS = ROOT / ".nan" / "engine-models"
# Two cards of 96 GB: what the models of the local catalogue were chosen for.
DEVICES = {"simulator": "simulated:2x98304", "vllm": "none"}
WAIT = {"simulator": "120", "vllm": "600", "none": "0"}  # seconds until models answer
PORTS = ("engine", "engine2", "engine3")
RUN = secrets.token_hex(4)
"""This supervisor's: by it the GPU worker tells engines that ended with an earlier run."""


class EngineError(Exception):
    """The engine that was asked for isn't there; the text names the remedy."""


def kind(stack: Stack) -> str:
    found = stack.environ.get("ENGINE") or "simulator"
    if found not in KINDS:
        raise EngineError(
            f"ENGINE={found} is unknown. Use ENGINE=simulator or ENGINE=vllm, or ENGINE=none to "
            "start none here."
        )
    if found == "vllm" and not ((VLLM_HOME / "bin" / "vllm").exists() and VLLM_MODELS.exists()):
        raise EngineError(
            f"ENGINE=vllm needs vLLM in {VLLM_HOME} and models in {VLLM_MODELS}. Install both with "
            "`python3 deploy/engine/install.py --target .nan/engine --models .nan/engine-models`, "
            "or run with the simulator (leave ENGINE unset)."
        )
    return found


def forget_memory(state_dir: Path) -> None:
    """Simulated GPUs are free when nothing runs. The process that takes an engine's memory back is
    ended together with the engine when a run stops."""
    shutil.rmtree(state_dir / "engines" / "gpus", ignore_errors=True)


def gpu_worker(stack: Stack) -> Part:
    """As on any GPU server: no database, no page; only the broker and the engines' key."""
    return worker(
        stack,
        "gpu",
        threads=2,
        env=_host(stack),
        queue=f"gpu.{SERVER}",
        after=("valkey",),
        stop_seconds=15,
    )


def _host(stack: Stack) -> dict[str, str]:
    chosen = kind(stack)
    return {
        **environment.inherited(stack),
        "DJANGO_SETTINGS_MODULE": "nan.settings",
        "NAN_ROLE": "gpu",
        "NAN_STATE_DIR": str(stack.state_dir),
        "REDIS_URL": stack.redis_url,
        "ENGINE_API_KEY": stack.engine_api_key,
        "NAN_GPU_NAME": SERVER,
        "NAN_GPU_ADDRESS": HOST,
        "NAN_GPU_STATE": str(stack.state_dir / "engines"),
        "NAN_GPU_RUN": RUN,
        "NAN_GPU_DRIVER": "process",
        "NAN_GPU_DEVICES": stack.environ.get("NAN_GPU_DEVICES") or DEVICES[chosen],
        "NAN_ENGINE_KIND": chosen,
        "NAN_ENGINE_HOME": str(VLLM_HOME),
        "HF_HOME": stack.environ.get("HF_HOME") or str(models_folder(stack)),
        "HF_TOKEN": stack.environ.get("HF_TOKEN", ""),
    }


def models_folder(stack: Stack) -> Path:
    """Of real models there is one for all stacks of this checkout: deploy/engine/models.py made
    them once."""
    return VLLM_MODELS if kind(stack) == "vllm" else stack.state_dir / "models"


def first_fleet(stack: Stack) -> Part:
    """The server, a catalogue, slots and replicas at the first start; then, at every start, waits
    until models answer. What an admin has changed since stays."""
    ports = [str(stack.ports[name]) for name in PORTS]
    names = ("worker-fleet", "worker-gateway", "worker-gpu", "edge", "gateway", "beat", "migrate")
    arguments = ["--server", SERVER, "--seats", SEATS, "--engine", kind(stack), "--ports", *ports]
    return Part(
        name="first-fleet",
        argv=[PYTHON, "manage.py", "first_fleet", *arguments, "--wait", WAIT[kind(stack)]],
        env=environment.app(stack),
        after=names,
        job=True,
        cwd=ROOT,
    )
