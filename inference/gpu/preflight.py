"""Would this specification start on this host? Asked before anything is drained.

Host checks are small functions, each with a name and a code; the engine's own parser answers for
flags, parsers and template, in its own environment.
"""

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from inference.excerpt import excerpt
from inference.gpu import background, devices, fetching, kinds, logtail, programs, weights
from inference.gpu.drivers import Driver, choose
from inference.gpu.engines import Engines
from inference.gpu.host import Host
from inference.gpu.spec import EngineSpec, SpecError, replica_of
from inference.gpu.state import HostState, read_json

REQUEST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
# Importing vllm takes up to half a minute on a cold disk.
CHECK_SECONDS = 150
# For logs and compiled kernels, beside weights that are there already.
DISK_MIB = 1024
Verdict = dict[str, Any]


def begin(state: HostState, *, request: str, spec: Any) -> None:
    """Once for each request."""
    if not REQUEST.fullmatch(request):
        return
    folder = state.folder / "preflights" / request
    if folder.exists() and background.state(folder) != "broken_off":
        return
    background.begin("preflight", folder, {"request": request, "spec": spec})


def look(folder: Path) -> dict[str, Any]:
    """Its row in a report. What was broken off is done anew when it is asked for again."""
    now = background.state(folder)
    if now == "running":
        return {"state": "running", "checks": []}
    if now == "done" and (found := read_json(folder / "result.json")):
        return {"state": "done", "checks": found["checks"]}
    return {"state": "broken_off", "checks": [_verdict("engine", "check_broken_off", "")]}


def run(host: Host, folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """In the background process."""
    try:
        spec = EngineSpec.from_json(request["spec"])
        kinds.must_fit(host, spec)
    except SpecError as error:
        return {"checks": [_verdict("specification", error.code, error.text)]}
    state = HostState(host.state)
    driver = choose(host)
    checks = [
        check_weights(host, state, spec),
        check_disk(host, spec),
        check_memory(host, Engines(host, state, driver), spec),
        check_port(state, driver, spec),
    ]
    if checks[0]["ok"]:  # without weights an engine can only complain about them
        answered = {check["name"] for check in checks}
        checks += [row for row in check_engine(host, spec) if row["name"] not in answered]
    return {"checks": checks}


def check_weights(host: Host, state: HostState, spec: EngineSpec) -> Verdict:
    snapshot = weights.snapshot(host.hf_home, spec.model, spec.revision)
    known = fetching.sizes(state, spec.model, spec.revision)
    problem = weights.problem(snapshot, sizes=known)
    return _verdict("weights", "weights_missing" if problem else "",
                    f"{spec.weights}: {problem}" if problem else "")  # fmt: skip


def check_disk(host: Host, spec: EngineSpec) -> Verdict:
    """Room for the weights where they are missing, else only for what an engine writes."""
    present = weights.snapshot(host.hf_home, spec.model, spec.revision).is_dir()
    for folder, needed in ((host.state, DISK_MIB), (host.hf_home, 0 if present else spec.disk_mib)):
        free = shutil.disk_usage(folder).free // 2**20 if folder.exists() else 0
        if free < needed:
            return _verdict("disk", "disk_short", f"{folder}: {needed} MiB needed, {free} free")
    return _verdict("disk")


def check_memory(host: Host, engines: Engines, spec: EngineSpec) -> Verdict:
    """What an engine of the same replica holds does not count: it will be stopped first."""
    if not spec.gpus:
        return _verdict("memory")
    try:
        found = {gpu.index: gpu for gpu in devices.read(host)}
    except devices.DevicesUnavailable as error:
        return _verdict("memory", "gpu_missing", str(error))
    leaving: set[int] = set()
    for instance, pids in engines.own_pids().items():
        if replica_of(instance) == spec.replica:
            leaving |= pids
    for index in spec.gpus:
        if index not in found:
            return _verdict("memory", "gpu_missing", f"GPU {index} of {len(found)}")
        gpu = found[index]
        free = gpu.total_mib - gpu.used_mib + gpu.used_by(leaving)
        if free < spec.memory_mib:
            text = f"GPU {index}: {spec.memory_mib} MiB needed, {free} of {gpu.total_mib} free"
            return _verdict("memory", "gpu_memory", text)
    return _verdict("memory")


def check_port(state: HostState, driver: Driver, spec: EngineSpec) -> Verdict:
    """Free, or held by an engine of the same replica."""
    for record in state.records():
        if not record.over and record.port == spec.port:
            if replica_of(record.instance) == spec.replica and driver.look(record).main:
                return _verdict("port")
            return _verdict("port", "port_taken", f"{spec.port}: {record.instance}")
    with socket.socket(socket.AF_INET6 if ":" in spec.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((spec.host, spec.port))
        except OSError as error:
            return _verdict("port", "port_taken", f"{spec.host}:{spec.port}: {error.strerror}")
    return _verdict("port")


def check_engine(host: Host, spec: EngineSpec) -> list[Verdict]:
    """The engine's own verdicts."""
    if not kinds.is_installed(host):
        return [_verdict("flags", "engine_missing", f"{host.home}/bin/vllm")]
    folder = str(weights.snapshot(host.hf_home, spec.model, spec.revision))
    question = json.dumps({"argv": spec.argv(folder), "model_path": folder})
    environment = {**kinds.environment(host, spec), "VLLM_API_KEY": host.engine_key}
    try:
        found = programs.answer(
            kinds.check(host), environment=environment, seconds=CHECK_SECONDS, question=question
        )
        return [_readable(host, row) for row in json.loads(_last_line(found.stdout))]
    except subprocess.TimeoutExpired:
        return [_verdict("flags", "check_timeout", f"{CHECK_SECONDS} s")]
    except OSError as error:
        return [_verdict("flags", "engine_missing", str(error.strerror))]
    except (ValueError, KeyError, TypeError):
        said = _last_line(found.stderr)
        return [_verdict("flags", "check_failed", logtail.redacted(said, host.secrets))]


def _readable(host: Host, row: dict[str, Any]) -> Verdict:
    ok, code = bool(row["ok"]), str(row.get("code", ""))[:60]
    detail = logtail.redacted(str(row.get("detail", "")), host.secrets)
    return _verdict(str(row["name"])[:40], "" if ok else code or "flag_refused", detail)


def _last_line(text: str) -> str:
    """Libraries like to print before the answer."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _verdict(name: str, code: str = "", detail: str = "") -> Verdict:
    return {"name": name, "ok": not code, "code": code, "detail": excerpt(detail, 300)}
