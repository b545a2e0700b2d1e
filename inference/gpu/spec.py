"""What a GPU host is told to run: validated data from which it builds argv itself.

Checked where it is made and again where it arrives: the queue is not trusted.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from inference.gpu import PROJECT
from inference.gpu import flags as engine_flags
from inference.gpu.flags import REPO, REVISION, FlagValue, is_whole

INSTANCE = re.compile(r"[a-z0-9][a-z0-9-]{0,59}", re.ASCII)
SERVED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", re.ASCII)
PROJECT_TEMPLATES = PROJECT / "deploy/engine/templates"
# Tuning only: nothing that changes what is logged, loaded from elsewhere, or bound.
ENVIRONMENT = frozenset((
    "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE",
    "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "VLLM_ATTENTION_BACKEND", "VLLM_CPU_KVCACHE_SPACE",
    "VLLM_CPU_OMP_THREADS_BIND", "VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_ENGINE_READY_TIMEOUT_S",
    "VLLM_FLASHINFER_MOE_BACKEND", "VLLM_MARLIN_USE_ATOMIC_ADD", "VLLM_MXFP4_USE_MARLIN",
    "VLLM_NVFP4_GEMM_BACKEND", "VLLM_RPC_TIMEOUT", "VLLM_SLEEP_WHEN_IDLE", "VLLM_USE_DEEP_GEMM",
    "VLLM_USE_FLASHINFER_MOE_FP4", "VLLM_USE_FLASHINFER_MOE_FP8", "VLLM_USE_FLASHINFER_SAMPLER",
    "VLLM_WORKER_MULTIPROC_METHOD",
))  # fmt: skip
# The simulator's own; refused by a host whose engines are real.
SIMULATOR = re.compile(r"SIM_[A-Z0-9_]{1,40}", re.ASCII)
NO_HOST = "none.invalid"
"""The one place that media may be fetched from: it never resolves (RFC 2606). An engine without a
list fetches whatever a prompt names, from inside the servers' network."""
SET_BY_THE_HOST = frozenset(("SIM_GPU_DIR", "SIM_GPU_TOTAL_MIB", "SIM_FAULTS_FILE"))
# Never empty: an empty VLLM_CPU_KVCACHE_SPACE ends the engine.
VALUE = re.compile(r"[A-Za-z0-9_.,:=+|\[\]-]{1,200}", re.ASCII)
FAULTS = re.compile(r"[A-Za-z0-9_.,:/-]{0,400}", re.ASCII)  # `org/name:fault`


class SpecError(Exception):
    """A specification that no host runs. `code` is stable, `text` is for an admin."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True, kw_only=True)
class EngineSpec:
    instance: str
    """One start of one replica (`r12-g7`), never reused. What stands before the last `-g` is the
    replica."""
    model: str
    revision: str
    names: tuple[str, ...]
    """All must answer; answers and metric labels carry the first."""
    host: str
    port: int
    gpus: tuple[int, ...]
    """Empty: CPU."""
    flags: Mapping[str, FlagValue]
    environment: Mapping[str, str]
    shutdown_timeout: int
    """Seconds that streams get after SIGTERM. Positive: with 0 vLLM may hang (see engine tests)."""
    memory_mib: int
    """Free on each GPU before the start."""
    disk_mib: int
    """Size of the weights."""

    def __post_init__(self) -> None:
        for name, good in self._checks():
            if not good:
                raise SpecError(f"{name}_refused", _refusal(name, getattr(self, name)))
        for flag, value in self.flags.items():
            if not (isinstance(flag, str) and engine_flags.accepted(flag, value)):
                raise SpecError("flag_refused", _refusal(f"flag {_shown(flag)}", value))
        for variable, text in self.environment.items():
            pattern = FAULTS if variable == "SIM_FAULTS" else VALUE
            if not (_variable_allowed(variable) and _matches(pattern, text)):
                raise SpecError("environment_refused", _refusal(_shown(variable), text))

    def _checks(self) -> tuple[tuple[str, bool], ...]:
        return (
            ("instance", _matches(INSTANCE, self.instance)),
            ("model", is_repository(self.model)),
            ("revision", is_commit(self.revision)),
            ("names", _good_names(self.names)),
            ("host", _is_internal(self.host)),
            ("port", _between(self.port, 1024, 65_535)),
            ("gpus", _good_gpus(self.gpus)),
            ("flags", isinstance(self.flags, Mapping) and len(self.flags) <= 64),
            ("environment", isinstance(self.environment, Mapping) and len(self.environment) <= 32),
            ("shutdown_timeout", _between(self.shutdown_timeout, 1, 3600)),
            ("memory_mib", _between(self.memory_mib, 0, 16_000_000)),
            ("disk_mib", _between(self.disk_mib, 0, 100_000_000)),
        )

    @property
    def replica(self) -> str:
        return replica_of(self.instance)

    @property
    def weights(self) -> str:
        return f"{self.model}@{self.revision}"

    @property
    def needs_simulator(self) -> bool:
        return any(name.startswith("SIM_") for name in self.environment)

    def to_json(self) -> dict[str, Any]:
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            **found,
            "names": list(self.names),
            "gpus": list(self.gpus),
            "flags": dict(self.flags),
            "environment": dict(self.environment),
        }

    @classmethod
    def from_json(cls, found: object) -> Self:
        """Raises SpecError on anything that is missing, unknown, or not as it must be."""
        if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
            raise SpecError("spec_unreadable", "The engine specification is not a JSON object.")
        known = {field.name for field in fields(cls)}
        if wrong := sorted(known ^ set(found)):
            raise SpecError("spec_unreadable", f"Missing or unknown: {_shown(', '.join(wrong))}.")
        values = dict(found)
        for name in ("names", "gpus"):
            if not isinstance(values[name], list | tuple):
                raise SpecError(f"{name}_refused", _refusal(name, values[name]))
            values[name] = tuple(values[name])
        return cls(**values)

    def argv(self, model_path: str) -> list[str]:
        """What follows `vllm serve`: the weights' folder first, then one word per flag."""
        words = [model_path, "--served-model-name", *self.names]
        words += [f"--host={self.host}", f"--port={self.port}"]
        words += [f"--shutdown-timeout={self.shutdown_timeout}", "--disable-uvicorn-access-log"]
        words += [f"--allowed-media-domains={NO_HOST}"]
        for name, value in sorted(self.flags.items()):
            shown = template_path(str(value), model_path) if name == "chat-template" else value
            words += engine_flags.words(name, shown)
        return words


def replica_of(instance: str) -> str:
    return instance.rpartition("-g")[0] or instance


def template_path(name: str, model_path: str) -> str:
    """One that ships with the project goes before one in the weights' folder."""
    own = PROJECT_TEMPLATES / name
    return str(own if own.is_file() else Path(model_path) / name)


def _variable_allowed(name: object) -> bool:
    return isinstance(name, str) and (
        name in ENVIRONMENT or (_matches(SIMULATOR, name) and name not in SET_BY_THE_HOST)
    )


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def is_repository(name: object) -> bool:
    """Neither `..` nor `--`, which stands for the slash in the cache's names of folders."""
    return isinstance(name, str) and bool(REPO.fullmatch(name)) and not re.search(r"\.\.|--", name)


def is_commit(name: object) -> bool:
    return _matches(REVISION, name)


def _between(value: object, low: int, high: int) -> bool:
    return is_whole(value) and low <= value <= high


def _good_names(names: object) -> bool:
    return (
        isinstance(names, tuple)
        and 1 <= len(names) <= 16
        and all(_matches(SERVED_NAME, name) and ".." not in name for name in names)
        and len(set(names)) == len(names)
    )


def _good_gpus(gpus: object) -> bool:
    return (
        isinstance(gpus, tuple)
        and len(gpus) <= 16
        and all(_between(gpu, 0, 63) for gpu in gpus)
        and len(set(gpus)) == len(gpus)
    )


def _is_internal(host: object) -> bool:
    """Loopback or a private network. Engines answer `/metrics` and more without a key."""
    try:
        address = ipaddress.ip_address(host if isinstance(host, str) else "")
    except ValueError:
        return False
    return not (
        address.is_global
        or address.is_unspecified
        or address.is_multicast
        or (address.is_reserved and not address.is_loopback)
        or "%" in str(host)
    )


def _refusal(what: str, value: object) -> str:
    return f"{what}: {_shown(value)} is not accepted."


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
