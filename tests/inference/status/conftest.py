"""Samples as they would have been taken, and an engine whose counters a test turns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from inference.models import ApiSample, Incident, IncidentUpdate, Replica, Slot, SlotSample
from inference.status import pages, shelf
from inference.status.written import Written
from tests.fakes.raw_http import Connection, RawServer, Request
from tests.inference.staff import rows

LABELS = 'engine="0",model_name="nan"'
BOUNDS = (0.1, 0.5, 1.0, 5.0)


@dataclass
class Counting:
    """An engine's /metrics, with vLLM's names."""

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    generated: float = 0
    first_tokens: list[float] = field(default_factory=list)
    drafted: float | None = None
    accepted: float = 0
    away: bool = False

    def answer(self, request: Request, connection: Connection) -> None:
        known = request.target == "/metrics" and not self.away
        connection.answer(200 if known else 500, self.text().encode())

    def text(self) -> str:
        ttft = "vllm:time_to_first_token_seconds"
        lines = [
            f"vllm:num_requests_running{{{LABELS}}} {self.running}",
            f"vllm:num_requests_waiting{{{LABELS}}} {self.waiting}",
            f"vllm:kv_cache_usage_perc{{{LABELS}}} {self.kv_usage}",
            f"vllm:generation_tokens_total{{{LABELS}}} {self.generated}",
            f"# TYPE {ttft} histogram",
        ]
        for bound in (*BOUNDS, float("inf")):
            count = sum(seconds <= bound for seconds in self.first_tokens)
            name = "+Inf" if bound == float("inf") else bound
            lines.append(f'{ttft}_bucket{{{LABELS},le="{name}"}} {count}')
        lines.append(f"{ttft}_count{{{LABELS}}} {len(self.first_tokens)}")
        lines.append(f"{ttft}_sum{{{LABELS}}} {sum(self.first_tokens)}")
        if self.drafted is not None:
            lines.append(f"vllm:spec_decode_num_draft_tokens_total{{{LABELS}}} {self.drafted}")
            lines.append(f"vllm:spec_decode_num_accepted_tokens_total{{{LABELS}}} {self.accepted}")
        return "\n".join(lines) + "\n"


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def listening(counting: Counting) -> Iterator[int]:
    """Its port."""
    with RawServer(counting.answer) as server:
        yield server.port


@pytest.fixture
def replica(db: None) -> Replica:
    return rows.small_fleet(1, prefix="box")[1][0]


@pytest.fixture
def slot(replica: Replica) -> Slot:
    return replica.slot


def stood(slot: Slot, states: str, *, until: datetime | None = None, every: int = 30) -> datetime:
    """One sample for each letter, the last one `until`: u(p), d(own), r(otating), (taken) o(ut), or
    a gap (-).

    Returns the time of the last one.
    """
    until = until or timezone.now()
    for back, state in enumerate(reversed(states)):
        if state != "-":
            SlotSample.objects.create(
                slot=slot,
                at=until - timedelta(seconds=every * back),
                seconds=every,
                up=state == "u",
                wanted=state != "o",
                down_seconds=every * (state in "dr"),
                rotation_seconds=every * (state == "r"),
                out_seconds=every * (state == "o"),
            )
    return until


def api_stood(states: str, *, until: datetime | None = None, every: int = 30) -> datetime:
    """As `stood`, for the API: u(p), g(ateway down), e(dge), k(eys), or a gap (-)."""
    until = until or timezone.now()
    names = {"u": "up", "g": "gateway", "e": "edge", "k": "keys"}
    for back, state in enumerate(reversed(states)):
        if state != "-":
            ApiSample.objects.create(
                at=until - timedelta(seconds=every * back),
                seconds=every,
                state=names[state],
                down_seconds=every * (state != "u"),
            )
    return until


# -- The public pages ---------------------------------------------------------------------------
@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> shelf.Shelf:
    """A process that has just begun, with a disk of its own."""
    fresh = shelf.Shelf(tmp_path / "status.json", aside=lambda run, seconds: run())
    monkeypatch.setattr(pages, "shelf", fresh)
    monkeypatch.setattr(pages, "_written", Written())
    return fresh


@pytest.fixture
def read(client: Client, kept: shelf.Shelf) -> Callable[..., Any]:
    def look(path: str = "/status.json") -> Any:
        kept.forget()
        answer = client.get(path, headers={"accept-language": "en"})
        assert answer.status_code == 200
        return answer.json() if path.endswith(".json") else answer.content.decode()

    return look


@pytest.fixture
def incident(slot: Slot) -> Incident:
    found = Incident.objects.create(slot=slot, began_at=timezone.now() - timedelta(hours=2))
    IncidentUpdate.objects.create(
        incident=found, text_es="Una <fuente> murió.", text_en="A power <supply> died."
    )
    return found
