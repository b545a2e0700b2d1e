"""What only a simulator has to be told, from `SIM_*` variables, so that argv stays vLLM's own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.simulator.faults import ProcessFault


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Speed, size and whole-process faults of one simulated engine."""

    ttft_seconds: float = 0.020
    tokens_per_second: float = 400.0
    prefill_tokens_per_second: float = 0.0
    """For what the prefix cache lacks of a prompt, one prompt after the other; 0: takes no time."""
    load_seconds: float = 0.0
    stop_seconds: float = 0.0
    """Pause between the last stream and the exit of a drained shutdown; vLLM takes 3 to 5 s."""
    model_max_len: int = 131_072
    """Context length of the model itself, the bound and default of `--max-model-len`."""
    kv_cache_tokens: int = 1_048_576
    embedding_size: int = 384
    runner: str = ""
    """`generate` or `pooling`: only its routes are there; empty: all."""
    faults: frozenset[ProcessFault] = frozenset()
    engine_core: bool = False
    """A second process, as vLLM's EngineCore: it outlives a SIGKILL of the first."""
    core_dies_after: float = 1.0
    """Seconds of serving, with the fault `core-dies`."""
    core_dead_seconds: float = 3.0
    """From the core's death, with `/health` 503, until the exit with 0."""
    gpu_folder: Path | None = None
    gpus: tuple[int, ...] = ()
    memory_mib: int = 0
    """Held on each of `gpus`, while `gpu_folder` is set."""
    gpu_total_mib: int | None = None
    """Of one GPU: where less than `memory_mib` is free, the start fails."""

    @classmethod
    def from_environ(
        cls,
        environ: Mapping[str, str],
        names: Sequence[str] = (),
        *,
        context: int | None = None,
        runner: str = "",
    ) -> "Settings":
        """For an engine that goes by `names`, with a model whose own context is known or not.

        Raises ValueError that names the variable when a value can't be read.
        """

        def number(name: str, default: float) -> float:
            try:
                return float(environ.get(name) or default)
            except ValueError as error:
                raise ValueError(f"{name} must be a number, got {environ[name]!r}") from error

        everywhere = ProcessFault.parse(environ.get("SIM_FAULTS", ""), names)
        faults, load_seconds = _from_file(environ.get("SIM_FAULTS_FILE"), names)
        folder = environ.get("SIM_GPU_DIR")
        total = int(number("SIM_GPU_TOTAL_MIB", 0))
        return cls(
            ttft_seconds=number("SIM_TTFT_MS", 20) / 1000,
            tokens_per_second=number("SIM_TOKENS_PER_SECOND", 400),
            prefill_tokens_per_second=number("SIM_PREFILL_TOKENS_PER_SECOND", 0),
            load_seconds=number("SIM_LOAD_SECONDS", 0) if load_seconds is None else load_seconds,
            stop_seconds=number("SIM_STOP_SECONDS", 0),
            model_max_len=int(number("SIM_MODEL_MAX_LEN", context or 131_072)),
            kv_cache_tokens=int(number("SIM_KV_CACHE_TOKENS", 1_048_576)),
            runner=runner,
            embedding_size=int(number("SIM_EMBEDDING_SIZE", 384)),
            faults=everywhere | faults,
            engine_core=environ.get("SIM_ENGINE_CORE") == "1",
            core_dies_after=number("SIM_CORE_DIES_AFTER", 1),
            core_dead_seconds=number("SIM_CORE_DEAD_SECONDS", 3),
            gpu_folder=Path(folder) if folder else None,
            gpus=_gpus(environ.get("CUDA_VISIBLE_DEVICES", "")),
            memory_mib=int(number("SIM_MEMORY_MIB", 0)),
            gpu_total_mib=total or None,
        )


def _from_file(
    path: str | None, names: Sequence[str]
) -> tuple[frozenset[ProcessFault], float | None]:
    """`SIM_FAULTS_FILE`, read at every start, so that a test can change it between two.

    `{"NAME": ["hang"], "org/other": {"faults": [], "load_seconds": 30}, "*": [...]}`: a name is
    one that is served, or the repository. No file, no faults. Loading takes the longest time named.
    """
    try:
        found = json.loads(Path(path).read_text()) if path else {}
    except FileNotFoundError:
        found = {}
    except ValueError as error:
        raise ValueError(f"SIM_FAULTS_FILE: {path} is no JSON: {error}") from error
    entries: list[Any] = [found[name] for name in ("*", *names) if name in found]
    entries = [entry if isinstance(entry, dict) else {"faults": entry} for entry in entries]
    faults = [fault for entry in entries for fault in entry.get("faults", ())]
    seconds = [float(entry["load_seconds"]) for entry in entries if "load_seconds" in entry]
    return ProcessFault.known(faults), max(seconds, default=None)


def _gpus(text: str) -> tuple[int, ...]:
    """Those named by a number; CUDA's other ways of naming one are not simulated."""
    return tuple(int(word) for word in text.split(",") if word.strip().isdigit())
