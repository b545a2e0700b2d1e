"""What a GPU host tells about itself, after every task."""

import time
from typing import Any

import structlog

from inference.gpu import background, devices, fetching, kinds, preflight, weights
from inference.gpu.engines import Engines
from inference.gpu.host import Host
from inference.gpu.state import HostState, Record

log = structlog.get_logger(__name__)


def build(host: Host, state: HostState, engines: Engines) -> dict[str, Any]:
    """Moves on what is due, then tells how everything is. Under the host's lock."""
    records, own = engines.advance()
    return {
        "at": time.time(),
        "serial": state.next_serial(),
        "name": host.name,
        "engine": {"kind": host.kind, "version": kinds.version(host)},
        "driver": host.driver,
        "address": host.address,
        "gpus": _gpus(host, own),
        "disk_free_mib": weights.free_mib(host.hf_home),
        "engines": {record.instance: _engine(record) for record in records},
        "preflights": {
            request["request"]: preflight.look(folder)
            for folder, request in background.requests(state.folder / "preflights")
        },
        "fetches": {
            f"{request['repo']}@{request['revision']}": fetching.look(host, folder, request)
            for folder, request in background.requests(state.folder / "fetches")
        },
        "weights": weights.present(host.hf_home),
    }


def _engine(record: Record) -> dict[str, Any]:
    return {
        "state": record.state,
        "since": record.since,
        "started_at": record.started_at,
        "exit_code": record.exit_code,
        "port": record.port,
        "progress": record.progress,
        "phase": record.phase,
        "kv_tokens": record.kv_tokens,
        "log": record.log,
        "signals": [name for name, _ in record.signals],
        "left": record.left,
        "cause": record.cause,
    }


def _gpus(host: Host, own: set[int]) -> list[dict[str, Any]]:
    try:
        return [gpu.to_json(own) for gpu in devices.read(host)]
    except devices.DevicesUnavailable as error:
        log.warning("gpus_not_read", error=str(error))
        return []
