"""Joining a fleet: the token, the file, and what may go wrong."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from inference.gpu import join
from inference.gpu.host import Host
from tests.fakes.serving import serving

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "the-token-that-works-once"
PASSWORD = 'redis-pass$HOME`x`"\\w'
SETTINGS = {
    "NAN_GPU_NAME": "gpu7",
    "REDIS_URL": f"redis://:{PASSWORD}@10.8.0.1:6379/0",
    "ENGINE_API_KEY": "sk-engines-0123456789",
}


@dataclass
class Site:
    status: int = 200
    answer: Any = field(default_factory=lambda: {"settings": SETTINGS})
    headers: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.calls.append((self.path, json.loads(body)))
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.end_headers()
            text = found.answer if isinstance(found.answer, str) else json.dumps(found.answer)
            self.wfile.write(text.encode())

    with serving(Handler) as address:
        found.url = f"http://{address}"
        yield found


def run(
    tmp_path: Path, url: str, *more: str, token: str | None = TOKEN
) -> subprocess.CompletedProcess[str]:
    """As on a new host: nothing in the environment, the token on standard input."""
    options = ("--address", "10.8.0.7", "--devices", "simulated:2x24576", "--engine", "simulator")
    places = ("--file", str(tmp_path / "gpu.env"), "--state", str(tmp_path / "state"))
    weights = ("--weights", str(tmp_path / "hf"))
    return subprocess.run(
        [sys.executable, "-m", "inference.gpu", "join", url, *options, *places, *weights, *more],
        input=token,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )


def test_a_host_joins(tmp_path: Path, site: Site) -> None:
    found = run(tmp_path, site.url)
    assert (found.returncode, found.stderr) == (0, "")
    ((path, asked),) = site.calls
    assert path == "/staff/servers/join"
    assert asked["token"] == TOKEN
    assert asked["address"] == "10.8.0.7"
    assert asked["gpus"] == [
        {"index": number, "name": "Simulated GPU", "total_mib": 24_576} for number in (0, 1)
    ]
    file = tmp_path / "gpu.env"
    assert file.stat().st_mode & 0o777 == 0o600
    settings = _by_shell(file)
    assert {name: settings[name] for name in SETTINGS} == SETTINGS
    assert Host.from_environ(settings).name == "gpu7"
    for secret in (TOKEN, PASSWORD, SETTINGS["ENGINE_API_KEY"]):
        assert secret not in found.stdout
    assert "celery -A nan worker -Q gpu.gpu7" in found.stdout


def _by_shell(file: Path) -> dict[str, str]:
    """What the printed command would give the worker."""
    script = f"set -a; . {shlex.quote(str(file))}; exec env -0"
    found = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, check=True)
    return dict(pair.split("=", 1) for pair in found.stdout.split("\0") if pair)


def test_the_printed_command_starts_the_worker(tmp_path: Path, site: Site) -> None:
    found = run(tmp_path, site.url)
    command = found.stdout.strip().splitlines()[-1].strip()
    assert subprocess.run(["sh", "-n", "-c", command]).returncode == 0
    assert command.startswith(f"cd {ROOT} && ")
    said = command.split(" -m ")[1].rstrip(")")
    assert said == "celery -A nan worker -Q gpu.gpu7 -n gpu-gpu7@%h -P threads -c 2"
    documented = said.replace("gpu7", "NAME")
    assert f"`{documented}`" in (ROOT / "docs" / "fleet.md").read_text()


@pytest.mark.parametrize("url", ["http://nan.example", "ftp://x", "nan.example", "https://u:p@x"])
def test_the_token_goes_nowhere_unsafe(tmp_path: Path, url: str) -> None:
    found = run(tmp_path, url)
    assert found.returncode == 1
    assert not (tmp_path / "gpu.env").exists()
    with pytest.raises(join.JoinRefused):
        join.check_site(url)


def test_a_redirect_is_not_followed(tmp_path: Path, site: Site) -> None:
    site.status, site.headers = 307, {"Location": site.url + "/elsewhere"}
    assert run(tmp_path, site.url).returncode == 1
    assert len(site.calls) == 1


def test_a_refusal_is_told_and_nothing_written(tmp_path: Path, site: Site) -> None:
    site.status = 403
    site.answer = {"error": "token_used", "text": "This token was used on Monday."}
    found = run(tmp_path, site.url)
    assert found.stderr == (
        "The site refused (403): This token was used on Monday. Nothing was written.\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [
        "no json", [], {}, {"settings": {}}, {"settings": {**SETTINGS, "LD_PRELOAD": "x"}},
        {"settings": {**SETTINGS, "REDIS_URL": "a\nLD_PRELOAD=x"}},
        {"settings": {**SETTINGS, "REDIS_URL": 7}},
        {"settings": {**SETTINGS, "NAN_GPU_NAME": "../x"}},
    ],
)  # fmt: skip
def test_an_answer_that_can_not_be_used(tmp_path: Path, site: Site, answer: Any) -> None:
    site.answer = answer
    found = run(tmp_path, site.url)
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_has_joined_keeps_its_file_and_its_token(tmp_path: Path, site: Site) -> None:
    (tmp_path / "gpu.env").write_text("old")
    found = run(tmp_path, site.url)
    assert (found.returncode, site.calls) == (1, [])
    assert (tmp_path / "gpu.env").read_text() == "old"
    assert run(tmp_path, site.url, "--replace").returncode == 0
    assert "gpu7" in (tmp_path / "gpu.env").read_text()


def test_a_file_that_can_not_be_written_costs_no_token(tmp_path: Path, site: Site) -> None:
    (tmp_path / "file").write_text("")
    found = run(tmp_path, site.url, "--file", str(tmp_path / "file" / "gpu.env"))
    assert (found.returncode, site.calls) == (1, [])
    assert "The token was not used" in found.stderr


def test_a_site_that_is_away(tmp_path: Path) -> None:
    found = run(tmp_path, "http://127.0.0.1:9")
    assert "did not answer (ConnectError). Nothing was written." in found.stderr


def test_an_option_that_is_missing_is_said_before_the_token_goes(
    tmp_path: Path, site: Site
) -> None:
    found = run(tmp_path, site.url, "--engine", "vllm")
    assert "NAN_ENGINE_HOME is not set" in found.stderr
    assert site.calls == []


def test_without_a_token_nothing_is_asked(tmp_path: Path, site: Site) -> None:
    assert run(tmp_path, site.url, token="").returncode == 1
    assert site.calls == []


def test_the_site_is_checked_here_too() -> None:
    assert join.check_site("https://nan.example/staff/") == "https://nan.example"
