"""Drives a swap in rows: rounds of swap and machine, with servers and engines that behave."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from django.utils import timezone

from inference.fleet.machine import Sight, advance
from inference.models import Replica, ReplicaState, Server, Swap
from inference.swaps import run
from tests.inference.fleet.rooms import exited, running, say, seen

PASSED = [{"name": "flags", "ok": True, "code": "", "detail": ""}]
SERVED = [{"name": "chat", "ok": True, "code": "", "detail": "", "seconds": 0.1}]


class Room:
    """`trouble`: for a replica with this state and model, what its report or checks are instead."""

    def __init__(
        self, *, trouble: Callable[[Replica], dict[str, Any] | None] | None = None
    ) -> None:
        self.trouble = trouble or (lambda replica: None)
        self.later = 0.0
        self.least_serving = 99
        self.drained: list[int] = []

    def round(self, *, seconds: float = 2) -> None:
        """Everything happens `seconds` after the round before."""
        self.later += seconds
        now = datetime.now(UTC) + timedelta(seconds=self.later)
        with mock.patch.object(timezone, "now", return_value=now):
            self._round(now)

    def _round(self, now: datetime) -> None:
        self._report()
        for replica in Replica.objects.whole():
            before = replica.state
            advance(replica, self._sight(replica, now))
            if (before, replica.state) == ("serving", "draining"):
                self.drained.append(replica.number)
        run.start_due(now)
        for swap in Swap.objects.active().select_related("slot", "from_model", "to_model"):
            run.advance(swap, now)
        serving = Replica.objects.filter(state=ReplicaState.SERVING).count()
        self.least_serving = min(self.least_serving, serving)

    def until_over(self, swap: Swap, *, rounds: int = 200) -> Swap:
        for _ in range(rounds):
            self.round()
            swap.refresh_from_db()
            if not swap.is_open:
                return swap
        raise AssertionError(
            f"{swap.state} {list(Replica.objects.values_list('state', 'error_code'))}"
        )

    def _sight(self, replica: Replica, now: Any) -> Sight:
        bad = self.trouble(replica) or {}
        return Sight(
            now=now,
            seen=bad.get("seen", seen(in_service=replica.state in ("joining", "serving"))),
            healthy=bad.get("healthy", replica.state == "starting" and bool(replica.report)),
            running=bad.get("running", 0),
            check=lambda r: self._check(r, bad),
        )

    def _check(self, replica: Replica, bad: dict[str, Any]) -> None:
        Replica.objects.filter(pk=replica.pk).update(checks=bad.get("checks", SERVED))

    def _report(self) -> None:
        for server in Server.objects.all():
            engines: dict[str, Any] = {}
            for replica in Replica.objects.whole().filter(server=server).exclude(instance=""):
                bad = self.trouble(replica) or {}
                stopped = replica.state == "stopping" or replica.report.get("state") == "exited"
                engine = bad.get("engine", exited() if stopped else running())
                if replica.state != "starting" or replica.told_at:
                    engines[replica.instance] = engine
            asked = {
                p.request: p for s in Swap.objects.active() for p in s.parts.all() if p.request
            }
            preflights = {
                request: {"state": self.preflight_state(), "checks": self.preflight(part)}
                for request, part in asked.items()
                if part.server_id == server.pk
            }
            say(server, engines=engines, preflights=preflights)

    def preflight_state(self) -> str:
        return "done"

    def preflight(self, part: Any) -> list[dict[str, Any]]:
        return PASSED
