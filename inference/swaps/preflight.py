"""Checks before anything is touched: the server's own, and whether it will carry enough."""

from datetime import datetime, timedelta
from typing import Any

from inference.excerpt import excerpt
from inference.fleet import specs, tell
from inference.gpu.spec import SpecError
from inference.models import Swap, SwapReplica
from inference.swaps import outlook

LONGEST = timedelta(seconds=180)
"""Of a server that reports: vLLM takes 15 s to read its flags on a slow machine."""


def look(swap: Swap, part: SwapReplica, now: datetime) -> str:
    """Stores the checks of one replica once they are known; until then says what is waited for."""
    if part.replica.server.silent(now):
        return "server_silent"
    if not part.request:
        part.request = f"s{swap.pk}-p{part.position}"
        part.asked_at = now
        part.save(update_fields=["request", "asked_at"])
    answer = part.server.report.get("preflights", {}).get(part.request)
    if answer and answer["state"] == "done":
        _store(part, [*answer["checks"], *_capacity(swap, part)])
    elif part.asked_at and now - part.asked_at > LONGEST:
        broken = answer["checks"] if answer else []
        _store(part, broken or [_failed("server", "preflight_timeout")])
    else:
        _ask(swap, part)
    return ""


def _ask(swap: Swap, part: SwapReplica) -> None:
    """Again each round: a server answers a request that it knows from what it has."""
    names = specs.names_for(part.replica, swap.to_model)
    instance = f"r{part.replica_id}-g0-{part.request}"  # never started; names the replica
    try:
        spec = specs.build(part.replica, swap.to_model, instance=instance, names=names)
    except SpecError as error:
        _store(part, [_failed("catalogue", "spec_refused", str(error))])
        return
    tell.preflight(part.server, part.request, spec)


def _capacity(swap: Swap, part: SwapReplica) -> list[dict[str, Any]]:
    """By what an engine has measured, else by the estimate: does it fit here, and do all replicas
    together carry enough?"""
    found = outlook.of_swap(swap)
    own = next((fit.code for fit in found.fits if fit.replica.pk == part.replica_id), "")
    code = own or found.shortfall
    return [
        {"name": "capacity", "ok": not code, "code": code, "detail": _carried(swap, code, found)}
    ]


def _carried(swap: Swap, code: str, found: outlook.Outlook) -> str:
    """What would be carried and what must be, in figures."""
    slot = swap.slot
    if code == "context_too_short":
        return f"{found.context_after} < {slot.least_context}"
    if code.startswith("capacity"):
        return f"{found.at_least:.1f} < {slot.least_concurrent}"
    return "" if found.concurrent is None else f"{found.concurrent:.1f}"


def _store(part: SwapReplica, checks: list[dict[str, Any]]) -> None:
    part.preflight = checks or [_failed("server", "preflight_timeout")]
    part.save(update_fields=["preflight"])


def _failed(name: str, code: str, detail: str = "") -> dict[str, Any]:
    return {"name": name, "ok": False, "code": code, "detail": excerpt(detail, 300)}
