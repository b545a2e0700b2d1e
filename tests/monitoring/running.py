"""Prometheus on a free port, with our own configuration pointed at parts that run."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.fakes.serving import serving
from tests.monitoring.sources import PROMETHEUS
from tests.waiting import wait_until

MISSING = (
    "{} is not installed, and the alert rules can't be tested without it. `make setup-dev` installs"
    " it where it may; else: apt-get install --no-install-recommends prometheus"
)


def program(name: str) -> str:
    found = shutil.which(name)
    if not found:
        pytest.fail(MISSING.format(name))
    return found


@dataclass(frozen=True)
class Prometheus:
    url: str
    folder: Path

    def ask(self, path: str, **query: str) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=query, timeout=20).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def alerts(self) -> set[tuple[str, str]]:
        """Name and slot of all whose expression is true, however short a time."""
        return {
            (alert["labels"]["alertname"], alert["labels"].get("slot", ""))
            for alert in self.ask("alerts")["alerts"]
        }

    @property
    def engines(self) -> Path:
        """The file of targets that `replicas targets` writes; it is read again by itself."""
        return self.folder / "engines" / "all.json"

    def labels(self, selector: str) -> set[str]:
        """Of all series that it selects; nothing if there are none."""
        found = self.query(f"last_over_time({selector}[1h])")
        return {label for series in found for label in series["metric"]}


def configuration(folder: Path, targets: Mapping[str, str], engines: Any) -> Path:
    """The deployed one with other addresses, and quicker."""
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(PROMETHEUS / "rules.yml")]
    for job in config["scrape_configs"]:
        if "static_configs" in job:
            job["static_configs"] = [{"targets": [targets[job["job_name"]]]}]
    (folder / "engines").mkdir(parents=True)
    (folder / "engines" / "all.json").write_text(json.dumps(engines))
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    return file


@contextmanager
def prometheus(folder: Path, config: Path, *, port: int) -> Iterator[Prometheus]:
    command = [
        program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    found = Prometheus(f"http://127.0.0.1:{port}", folder)
    try:
        wait_until(lambda: _ready(found), seconds=60, what="Prometheus to be ready")
        yield found
    finally:
        process.terminate()
        process.wait(30)


def _ready(found: Prometheus) -> bool:
    try:
        return httpx.get(f"{found.url}/-/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def saying(text: str) -> AbstractContextManager[str]:
    """A target that always says this; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

    return serving(Handler)
