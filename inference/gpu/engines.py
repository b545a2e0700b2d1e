"""Starting, ending and forgetting engines, and moving on what was begun.

Every function is called under the host's lock, takes no longer than a few seconds, and may be
killed anywhere: what should be is noted before it is done, and the next call goes on from there.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from inference.excerpt import excerpt
from inference.gpu import causes, kinds, logtail, processes, weights
from inference.gpu.drivers import Driver, DriverError, Launch, Seen
from inference.gpu.host import Host
from inference.gpu.spec import INSTANCE, EngineSpec, SpecError
from inference.gpu.state import HostState, Record

log = structlog.get_logger(__name__)

# From the end of the main process until what it left behind is killed: it may be ending by itself.
LEFT_SECONDS = 5.0
# A SIGTERM while an engine loads is often lost; a second one ends it.
AGAIN_WHILE_LOADING = 3.0
AGAIN_AFTER_STREAMS = 5.0
LONGEST_STOP = 3600


class Engines:
    def __init__(self, host: Host, state: HostState, driver: Driver) -> None:
        self._host = host
        self._state = state
        self._driver = driver

    def start(self, found: Any) -> None:
        """Once for each instance, ever: one that ended, was stopped before, or is forgotten stays
        so. What can't be started is recorded as exited with the cause."""
        spec, refusal = _read(found)
        instance = spec.instance if spec else _instance(found)
        if instance is None or self._state.knows(instance):
            return
        now = time.time()
        record = Record(instance=instance, asked_at=now, since=now, boot=processes.boot())
        record.run = self._host.run
        record.spec = spec.to_json() if spec else None
        if spec and refusal is None:
            refusal = self._refusal(spec)
        if spec is None or refusal:
            self._not_started(record, refusal or SpecError("spec_unreadable", ""))
            return
        self._state.engine(instance).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._state.save(record)
        try:
            self._driver.start(record, self._launch(spec))
        except DriverError as error:
            log.warning("engine_not_started", instance=instance, error=str(error))
            text = excerpt(str(error), causes.TEXT_LENGTH)
            record.cause = {"code": "driver_failed", "text": text}
        record.started_at = time.time()
        self._state.save(record)

    def stop(self, instance: str, seconds: int) -> None:
        """SIGKILL after `seconds` from the first call; a later call may only shorten that."""
        seconds = max(0, min(int(seconds), LONGEST_STOP))
        now = time.time()
        record = self._state.load(instance)
        if record is None:
            if not self._state.knows(instance):
                record = Record(instance=instance, asked_at=now, since=now)
                self._not_started(record, SpecError("stopped_before_start", ""))
            return
        if record.state == "running":
            record.state, record.since = "stopping", now
            record.stop_at, record.stop_seconds = now, seconds
        elif record.state == "stopping" and record.stop_at is not None:
            until = now - record.stop_at + seconds
            record.stop_seconds = min(record.stop_seconds, int(until))
        self._state.save(record)

    def forget(self, instance: str) -> None:
        """Only what has ended, with all its processes."""
        record = self._state.load(instance)
        if record and record.over:
            self._driver.forget(record)
            self._state.forget(instance)

    def advance(self) -> tuple[list[Record], set[int]]:
        """Looks at every engine, sends the signals that are due; what all are after that, and the
        processes that were found to be theirs."""
        records = list(self._state.records())
        own: set[int] = set()
        for record in records:
            if record.over:
                continue
            try:
                own |= self._move(record)
            except DriverError as error:
                log.warning("engine_not_seen", instance=record.instance, error=str(error))
            self._state.save(record)
        return records, own

    def own_pids(self) -> dict[str, frozenset[int]]:
        """Instance → its processes, for those that are not over."""
        found = {}
        for record in self._state.records():
            if not record.over:
                with suppress(DriverError):
                    found[record.instance] = self._driver.look(record).pids
        return found

    def _move(self, record: Record) -> frozenset[int]:
        seen = self._driver.look(record)
        now = time.time()
        folder = self._state.engine(record.instance)
        self._driver.collect_logs(record)
        self._read_logs(record, folder)
        if seen.main:
            if record.state == "stopping":
                self._signal_if_due(record, now)
        else:
            self._ended(record, seen, now, logtail.read(folder))
        record.left = seen.left
        return seen.pids

    def _ended(self, record: Record, seen: Seen, now: float, lines: list[str]) -> None:
        if record.state != "exited":
            record.cause = (
                record.cause
                or _untold(record, self._host.run)
                or causes.recognise(
                    lines,
                    exit_code=seen.exit_code,
                    signalled=record.stop_at is not None,
                    serving=record.serving,
                )
            )
            record.state, record.since = "exited", seen.ended_at or now
        record.exit_code = seen.exit_code if record.exit_code is None else record.exit_code
        if seen.left and now - record.since > LEFT_SECONDS:
            self._kill(record, now)

    def _signal_if_due(self, record: Record, now: float) -> None:
        asked = record.stop_at or now
        if now >= asked + record.stop_seconds:
            self._kill(record, now)
        elif not record.signals or (
            len(record.signals) == 1 and now >= record.signals[0][1] + self._again(record)
        ):
            record.signals.append(("TERM", now))
            self._state.save(record)
            self._driver.terminate(record)

    def _kill(self, record: Record, now: float) -> None:
        if not record.signals or record.signals[-1][0] != "KILL":
            log.warning("engine_killed", instance=record.instance, state=record.state)
            record.signals.append(("KILL", now))
            self._state.save(record)
        self._driver.kill(record)

    def _again(self, record: Record) -> float:
        """Seconds from the first SIGTERM to the second: not into streams that may finish."""
        if not record.serving or record.spec is None:
            return AGAIN_WHILE_LOADING
        return float(record.spec["shutdown_timeout"]) + AGAIN_AFTER_STREAMS

    def _read_logs(self, record: Record, folder: Path) -> None:
        lines = logtail.read(folder)
        start = logtail.progress(lines)
        record.kv_tokens = start.kv_tokens or record.kv_tokens
        if start.serving:
            record.serving = True
        if record.serving:
            record.progress, record.phase = 100, "serving"
        elif start.percent is not None and start.percent >= (record.progress or 0):
            record.progress, record.phase = start.percent, start.phase
        else:
            record.phase = record.phase or start.phase
        record.log = logtail.shown(lines, serving=record.serving, secrets=self._host.secrets)
        logtail.trim(folder)

    def _refusal(self, spec: EngineSpec) -> SpecError | None:
        try:
            kinds.must_fit(self._host, spec)
        except SpecError as error:
            return error
        if not weights.snapshot(self._host.hf_home, spec.model, spec.revision).is_dir():
            return SpecError("weights_missing", spec.weights)
        return None

    def _launch(self, spec: EngineSpec) -> Launch:
        folder = weights.snapshot(self._host.hf_home, spec.model, spec.revision)
        return Launch(
            command=kinds.serve(self._host, spec, str(folder)),
            environment=kinds.environment(self._host, spec),
            secrets={"VLLM_API_KEY": self._host.engine_key},
        )

    def _not_started(self, record: Record, refusal: SpecError) -> None:
        record.state = "exited"
        text = excerpt(refusal.text, causes.TEXT_LENGTH)
        record.cause = {"code": refusal.code, "text": text}
        self._state.save(record)


def _untold(record: Record, run: str) -> dict[str, str] | None:
    """Ends of which the engine's logs say nothing."""
    if record.stop_at is not None:
        return None
    if record.run != run:
        return {"code": "run_ended", "text": "It ended with an earlier run of this host's stack."}
    if record.boot != processes.boot():
        return {"code": "host_restarted", "text": "The host was restarted."}
    if record.started_at is None:
        return {"code": "worker_killed", "text": "The worker ended before it started the engine."}
    return None


def _read(found: Any) -> tuple[EngineSpec | None, SpecError | None]:
    try:
        return EngineSpec.from_json(found), None
    except SpecError as error:
        return None, error


def _instance(found: Any) -> str | None:
    """The name in a specification that is refused otherwise, so that the refusal can be told."""
    name = found.get("instance") if isinstance(found, dict) else None
    return name if isinstance(name, str) and INSTANCE.fullmatch(name) else None
