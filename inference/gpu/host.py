"""What this GPU host was told about itself: the one place that reads its environment."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self, cast, get_args

EngineKind = Literal["vllm", "simulator"]
DriverName = Literal["process", "systemd", "compose"]
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
DEVICES = re.compile(r"nvidia|none|simulated:[0-9]{1,2}x[0-9]{1,8}", re.ASCII)
IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._/:@-]{0,254}", re.ASCII)
# What engines inherit: where things are and which language. No broker, no keys.
# NAN_STACK: the mark by which the local stack finds what belongs to it.
INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
             "CUDA_HOME", "HF_HOME", "VIRTUAL_ENV", "NAN_STACK")  # fmt: skip


class HostError(Exception):
    """The host's settings are missing or wrong; the message names the variable and the remedy."""


@dataclass(frozen=True, kw_only=True)
class Host:
    name: str
    address: str
    state: Path
    driver: DriverName
    devices: str
    kind: EngineKind
    home: Path | None
    """Virtual environment that holds vllm."""
    hf_home: Path
    image: str
    """Container image with vllm, by digest: driver `compose` only."""
    hub_url: str
    """HF_ENDPOINT: a mirror of the hub; empty for the hub itself."""
    engine_key: str = field(repr=False)
    hub_token: str = field(repr=False)
    inherited: Mapping[str, str] = field(repr=False)
    run: str
    """NAN_GPU_RUN: which run of the local stack this is, whose engines end with it. Empty on a GPU
    server: there they outlive the worker."""
    simulator: Mapping[str, str]
    """SIM_ variables of the host, for simulated engines."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> Self:
        env = os.environ if environ is None else environ
        if env.get("NAN_ROLE") != "gpu":
            raise HostError(
                "This process is not a GPU worker: NAN_ROLE is not `gpu`. Tasks for GPU hosts "
                "belong on the queue gpu.NAME of a host that has joined."
            )
        kind = cast(EngineKind, _choice(env, "NAN_ENGINE_KIND", get_args(EngineKind)))
        driver = cast(DriverName, _choice(env, "NAN_GPU_DRIVER", get_args(DriverName)))
        home = env.get("NAN_ENGINE_HOME")
        if kind == "vllm" and driver != "compose" and not home:
            raise HostError(
                "NAN_ENGINE_HOME is not set: name the virtual environment that holds vllm."
            )
        return cls(
            name=_like(env, "NAN_GPU_NAME", NAME),
            address=_address(env),
            state=_folder(env, "NAN_GPU_STATE"),
            driver=driver,
            devices=_like(env, "NAN_GPU_DEVICES", DEVICES),
            kind=kind,
            home=Path(home) if home else None,
            hf_home=_folder(env, "HF_HOME"),
            image=_like(env, "NAN_ENGINE_IMAGE", IMAGE) if driver == "compose" else "",
            engine_key=_given(env, "ENGINE_API_KEY"),
            hub_url=env.get("HF_ENDPOINT", ""),
            run=env.get("NAN_GPU_RUN", ""),
            hub_token=env.get("HF_TOKEN", ""),
            inherited={
                **{name: env[name] for name in INHERITED if name in env},
                "NAN_PART": "engine",
            },
            simulator=_simulator(env),
        )

    def answers_on(self, host: str) -> bool:
        """Whether an engine may bind `host`: this host's own address, or loopback."""
        return host == self.address or ipaddress.ip_address(host).is_loopback

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.engine_key, self.hub_token)))


def _simulator(env: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name, value in env.items() if name.startswith("SIM_")}
    devices = env.get("NAN_GPU_DEVICES", "")
    if devices.startswith("simulated:"):
        found.setdefault("SIM_GPU_DIR", f"{env['NAN_GPU_STATE']}/gpus")
        found.setdefault("SIM_GPU_TOTAL_MIB", devices.rpartition("x")[2])
    return found


def _given(env: Mapping[str, str], name: str) -> str:
    if value := env.get(name):
        return value
    raise HostError(
        f"{name} is not set. `python -m inference.gpu join` writes the settings of a GPU host; "
        "docs/operations.md lists them."
    )


def _choice(env: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    value = _given(env, name)
    if value not in choices:
        raise HostError(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


def _like(env: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str:
    value = _given(env, name)
    if not pattern.fullmatch(value):
        raise HostError(f"{name} must look like {pattern.pattern}, not {value!r}.")
    return value


def _folder(env: Mapping[str, str], name: str) -> Path:
    path = Path(_given(env, name))
    if not path.is_absolute():
        raise HostError(f"{name} must be an absolute path, not {str(path)!r}.")
    return path


def _address(env: Mapping[str, str]) -> str:
    value = _given(env, "NAN_GPU_ADDRESS")
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise HostError(f"NAN_GPU_ADDRESS must be an IP address, not {value!r}.") from None
