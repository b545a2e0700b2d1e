"""Rows of a fleet in each of its states, without anything that runs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.utils import timezone

from inference.models import (
    Alert,
    CatalogModel,
    FleetEvent,
    Measurement,
    PublicName,
    Replica,
    Server,
    Slot,
    Swap,
    SwapReplica,
    measured_with,
)
from members.models import User

COMMIT = "95a723d08a9490559dae23d0cff1d9466213d989"
GPU_MIB = 98_304
CONFIG = {
    "model_type": "qwen3",
    "dtype": "bfloat16",
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40_960,
    "vocab_size": 151_936,
}
LOG = [
    "INFO 11-29 20:14:02 Loading weights from the snapshot",
    "Loading safetensors checkpoint shards:  41% Completed | 5/12 [00:31<00:44,  6.3s/it]",
]
CHECKS = [
    {"name": "chat", "ok": True, "code": "", "detail": "", "seconds": 0.41},
    {"name": "stream", "ok": True, "code": "", "detail": "", "seconds": 0.52},
    {"name": "tools", "ok": None, "code": "", "detail": "", "seconds": 0.0},
]


def catalogue_model(name: str, title: str = "", **fields: Any) -> CatalogModel:
    values = {
        "title": title or name.title(),
        "repo": f"acme/{name}",
        "revision": COMMIT,
        "licence": "Apache-2.0",
        "weights_mib": 8_200,
        "memory_mib": 24_000,
        "config": CONFIG,
        "context_length": 32_768,
        "max_output": 8_192,
        "capabilities": ["tools"],
        **fields,
    }
    return CatalogModel.objects.create(name=name, **values)


def server(name: str, *, gpus: int = 2, **fields: Any) -> Server:
    """One that reports now."""
    found = [
        {
            "index": n,
            "name": "NVIDIA RTX PRO 6000",
            "total_mib": GPU_MIB,
            "used_mib": 40_960,
            "foreign_mib": 0,
        }
        for n in range(gpus)
    ]
    values = {
        "seats": 25,
        "address": "10.8.0.7",
        "driver": "systemd",
        "engine": "vllm 0.33.0",
        "gpus": found,
        "report": {"disk_free_mib": 812_345, "engines": {}, "fetches": {}, "weights": []},
        "joined_at": timezone.now(),
        "reported_at": timezone.now(),
        **fields,
    }
    return Server.objects.create(name=name, **values)


def measurement(
    model: CatalogModel, on: Server, *, gpus: Sequence[int] = (0,), kv_tokens: int = 777_216
) -> Measurement:
    """What an engine said there."""
    return Measurement.objects.create(
        model=model,
        measured_with=measured_with(model, on, gpus),
        kv_tokens=kv_tokens,
        concurrent=kv_tokens / model.context_length,
        gpus=on.kinds_of(gpus),
        engine=on.engine,
        server=on,
    )


def slot(name: str = "nan", model: CatalogModel | None = None, **fields: Any) -> Slot:
    number = Slot.objects.count() + 1
    since = timezone.now() - timedelta(days=40) if model else None
    values = {"title": name.title(), "model": model, "model_since": since, **fields}
    row = Slot.objects.create(name=name, number=number, **values)
    PublicName.objects.create(name=name, slot=row)
    if model:
        PublicName.objects.create(name=f"{model.name}-{name}", slot=row, model=model)
    return row


def replica(of: Slot, on: Server, *, state: str = "serving", **fields: Any) -> Replica:
    number = of.replicas.count() + 1
    running = state not in ("off", "failed")
    values = {
        "gpus": [number - 1],
        "port": 8100 + on.replicas.count() + 1,
        "goal": "off" if state == "off" else "serve",
        "goal_model": of.model,
        "model": of.model if running else None,
        "instance": f"r{number}-g1-v3" if running else "",
        "state_since": timezone.now() - timedelta(minutes=7),
        "in_flight": 3 if state == "serving" else 0,
        **fields,
    }
    return Replica.objects.create(slot=of, server=on, number=number, state=state, **values)


def tell(on: Server, instance: str, **report: Any) -> None:
    """What the server says about one engine."""
    engine = {"state": "running", "progress": 41, "phase": "loading weights", "log": LOG}
    on.report["engines"][instance] = {**engine, **report}
    on.save()


def swap(of: Slot, to: CatalogModel, by: User, *, state: str = "planned", **fields: Any) -> Swap:
    began = timezone.now() - timedelta(minutes=5)
    values: dict[str, Any] = {"proposed_by": by, "proposed_at": began, **fields}
    if state not in ("planned", "cancelled"):
        values |= {"approved_by": by, "approved_at": began, "start_at": began}
    if state not in ("planned", "approved", "cancelled"):
        values |= {"started_at": began}
    if state in ("done", "failed", "aborted", "cancelled"):
        values |= {"finished_at": timezone.now()}
    row = Swap.objects.create(slot=of, from_model=of.model, to_model=to, state=state, **values)
    for position, one in enumerate(of.replicas.all(), start=1):
        SwapReplica.objects.create(swap=row, replica=one, server=one.server, position=position)
    FleetEvent.objects.create(swap=row, what="planned", actor=by, at=began)
    return row


def steps(
    row: Swap, one: Replica, states: Sequence[str], *, seconds: int = 20, detail: str = ""
) -> None:
    """Events of a replica in a swap, evenly spaced, the last one `seconds` ago."""
    now = timezone.now()
    for n, what in enumerate(states, start=1):
        back = len(states) - n
        FleetEvent.objects.create(
            swap=row,
            replica=one,
            server=one.server,
            model=row.from_model if what in ("draining", "stopping") else row.to_model,
            what=what,
            at=now - timedelta(seconds=seconds * (back + 1)),
            detail=detail if back == 0 else "",
        )


def part(row: Swap, one: Replica, state: str, **fields: Any) -> None:
    SwapReplica.objects.filter(swap=row, replica=one).update(state=state, **fields)


def alert(code: str, **about: Any) -> Alert:
    return Alert.objects.create(code=code, **about)


def small_fleet(
    replicas: int = 2, *, name: str = "nan", prefix: str = "gpu", old: CatalogModel | None = None
) -> tuple[Slot, list[Replica], CatalogModel]:
    """A slot on one server for each two replicas, and a model to move to."""
    old = old or catalogue_model("alder", "Alder 35B A3B", capabilities=["tools", "vision"])
    new = CatalogModel.objects.filter(name="birch").first() or catalogue_model(
        "birch", "Birch 27B", capabilities=["tools", "reasoning"]
    )
    of = slot(name, old)
    rows: list[Replica] = []
    for n in range(replicas):
        on = server(f"{prefix}-{n // 2 + 1}") if n % 2 == 0 else rows[-1].server
        rows.append(replica(of, on, gpus=[n % 2]))
    return of, rows, new
