"""The real Celery worker of a GPU host, without a database, killed at every step."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from pytest_django import Settings

from inference.gpu import processes, tasks
from inference.gpu.host import HostError
from nan.celery import app
from tests.inference.gpu.rig import KEY, Rig, spec

ROOT = Path(__file__).resolve().parents[3]


class Worker:
    """And the other end of its messages."""

    def __init__(self, rig: Rig, redis: str) -> None:
        self.rig = rig
        self.environ = {**rig.environ, "REDIS_URL": redis, "LANG": "C.UTF-8"}
        self.name = rig.environ["NAN_GPU_NAME"]
        self.reports: list[dict[str, Any]] = []
        self.start()

    def start(self) -> None:
        with (self.rig.folder / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "nan", "worker", "-Q", f"gpu.{self.name}",
                 "-P", "threads", "-c", "2", "-n", f"{self.name}@%h", "-l", "WARNING",
                 "--without-mingle", "--without-gossip"],
                cwd=ROOT, env=self.environ, stdout=log, stderr=log,
            )  # fmt: skip

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def tell(self, task: str, *arguments: Any, expires: int = 60) -> None:
        app.send_task(
            f"inference.gpu.tasks.{task}", (self.name, *arguments), queue=f"gpu.{self.name}",
            expires=expires,
        )  # fmt: skip

    def collect(self) -> None:
        with app.connection_for_read() as connection:
            queue = connection.SimpleQueue("fleet")
            try:
                while True:
                    message = queue.get(block=False)
                    message.ack()
                    if message.headers["task"] != "inference.tasks.fleet_take_report":
                        continue
                    (server, report), _, _ = message.payload
                    if server == self.name:
                        self.reports.append(report)
            except Empty:
                queue.close()

    def until(self, good: Callable[[dict[str, Any]], Any], seconds: float = 30) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            self.tell("gpu_report", expires=5)
            time.sleep(0.2)
            self.collect()
            if self.reports and good(self.reports[-1]):
                return self.reports[-1]
            log = (self.rig.folder / "worker.log").read_text()[-3000:]
            assert time.monotonic() < deadline, f"{self.reports[-1:]}\n{log}"


def engine(report: dict[str, Any], instance: str = "r1-g1") -> dict[str, Any]:
    found: dict[str, Any] = report["engines"].get(instance) or {}
    return found


@pytest.fixture
def worker(rig: Rig, settings: Settings) -> Iterator[Worker]:
    rig.environ["NAN_GPU_NAME"] = f"w{os.getpid()}-{time.time_ns() % 10**9}"
    app.send_task("inference.tasks.fleet_pass", queue="fleet")  # not the only one who sends there
    running = Worker(rig, os.environ["REDIS_URL"])
    yield running
    running.kill()


def test_an_engines_life_through_the_queue(worker: Worker) -> None:
    wanted = spec().to_json()
    worker.tell("gpu_start", wanted)
    worker.tell("gpu_start", wanted)
    report = worker.until(lambda report: engine(report).get("phase") == "serving")
    assert report["engine"] == {"kind": "simulator", "version": "0.32.0+simulator"}
    assert (report["driver"], report["address"]) == ("process", "127.0.0.1")
    assert [gpu["used_mib"] for gpu in report["gpus"]] == [1000, 0]
    assert report["weights"] == [f"{wanted['model']}@{wanted['revision']}"]
    worker.tell("gpu_preflight", "s1-p1", {**wanted, "instance": "r1-g0-s1-p1"})
    report = worker.until(lambda report: (report["preflights"].get("s1-p1") or {}).get("checks"))
    assert {check["ok"] for check in report["preflights"]["s1-p1"]["checks"]} == {True}
    worker.tell("gpu_fetch", "example/Other", "b" * 40, 10**8)  # stand-ins need no such disk
    worker.until(lambda report: len(report["weights"]) == 2)
    worker.tell("gpu_stop", "r1-g1", 20)
    report = worker.until(lambda report: engine(report)["state"] == "exited")
    assert engine(report)["signals"] == ["TERM"]
    worker.tell("gpu_forget", "r1-g1")
    worker.until(lambda report: report["engines"] == {})
    serials = [report["serial"] for report in worker.reports]
    assert len(set(serials)) == len(serials)
    text = (worker.rig.folder / "worker.log").read_text()
    assert KEY not in text
    assert KEY not in str(worker.reports)


def test_a_killed_worker_takes_no_engine_with_it_and_its_successor_goes_on(
    worker: Worker,
) -> None:
    worker.tell("gpu_start", spec(environment={"SIM_LOAD_SECONDS": "3"}).to_json())
    worker.until(lambda report: engine(report).get("phase") == "loading weights")
    pid = worker.rig.pid("r1-g1")
    worker.kill()
    worker.start()
    worker.until(lambda report: engine(report)["phase"] == "serving")
    assert worker.rig.pid("r1-g1") == pid
    worker.kill()
    assert processes.look(pid) is not None
    worker.tell("gpu_stop", "r1-g1", 20)
    worker.start()
    report = worker.until(lambda report: engine(report)["state"] == "exited")
    assert (engine(report)["exit_code"], engine(report)["left"]) == (0, 0)


def test_killed_in_the_middle_of_a_stop(worker: Worker) -> None:
    worker.tell("gpu_start", spec(environment={"SIM_FAULTS": "ignore-sigterm"}).to_json())
    worker.until(lambda report: engine(report).get("phase") == "serving")
    worker.tell("gpu_stop", "r1-g1", 4)
    worker.until(lambda report: engine(report)["signals"] == ["TERM"])
    worker.kill()
    time.sleep(4)
    worker.start()
    report = worker.until(lambda report: engine(report)["state"] == "exited")
    assert engine(report)["signals"] == ["TERM", "KILL"]
    assert worker.rig.family("r1-g1") == set()


def test_a_message_that_is_too_old_does_nothing(worker: Worker) -> None:
    worker.kill()
    worker.tell("gpu_start", spec().to_json(), expires=1)
    time.sleep(1.5)
    worker.start()
    assert worker.until(lambda report: True)["engines"] == {}


def test_only_a_gpu_host_does_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that reaches another worker by mistake, or by malice."""
    monkeypatch.delenv("NAN_ROLE", raising=False)
    with pytest.raises(HostError, match="not a GPU worker"):
        tasks.gpu_start("rig", spec().to_json())


def test_a_message_for_another_host_is_refused(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in rig.environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(HostError, match="This host is rig"):
        tasks.gpu_start("other", spec().to_json())
    assert rig.report()["engines"] == {}


@pytest.mark.parametrize("seconds", [None, "x", [], float("nan"), float("inf")])
def test_hostile_arguments_are_refused_and_a_report_follows(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, seconds: Any
) -> None:
    sent: list[Any] = []
    for name, value in rig.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(app, "send_task", lambda *words, **_: sent.append(words))
    rig.start(spec())
    tasks.gpu_stop("rig", "r1-g1", seconds)
    tasks.gpu_stop("rig", "../../x", 1)
    tasks.gpu_forget("rig", "../../x")
    tasks.gpu_forget("rig", 7)
    tasks.gpu_fetch("rig", 7, None, "x")
    tasks.gpu_preflight("rig", 7, None)
    assert len(sent) == 6
    assert [report[1][1]["engines"]["r1-g1"]["state"] for report in sent] == ["running"] * 6
