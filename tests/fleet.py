"""The fleet of a running stack, as an admin and the machine room see it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.stack import ROOT, Stack, bare_environment, wait_until

LOOK = """
import json
from inference.models import *
def replica(r):
    return {"id": r.pk, "slot": r.slot.name, "number": r.number, "port": r.port, "state": r.state,
            "goal": r.goal, "model": r.model.name if r.model else None, "instance": r.instance,
            "error": r.error_code, "detail": r.error_detail, "in_flight": r.in_flight,
            "server": r.server.name, "gpus": r.gpus, "checks": r.checks, "report": r.report}
def swap(s):
    return {"id": s.pk, "state": s.state, "error": s.error_code, "detail": s.error_detail,
            "step": s.error_step, "waiting": s.waiting_code, "paused": bool(s.paused_at),
            "parts": [(p.replica_id, p.state) for p in s.parts.all()],
            "events": [(e.what, e.replica_id, e.detail, e.at.timestamp()) for e in s.events.all()]}
"""

LOOP = """
import django, json, sys, traceback
django.setup()
from django.db import close_old_connections
for line in sys.stdin:
    names = {}
    try:
        exec(json.loads(line), names)
        print(json.dumps({"result": names.get("result")}), flush=True)
    except BaseException:
        print(json.dumps({"error": traceback.format_exc()}), flush=True)
    close_old_connections()
"""


@dataclass
class Fleet:
    """`faults`: what the next engines do wrong, by the names or repositories of their models."""

    stack: Stack
    _shell: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    def ask(self, expression: str) -> Any:
        return self.do(f"result = {expression}")

    def do(self, code: str) -> Any:
        """Runs `code`, which assigns `result`, in a process that stays, with Django set up."""
        if self._shell is None or self._shell.poll() is not None:
            self._shell = subprocess.Popen(
                [sys.executable, "-c", LOOP],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env={**bare_environment(), **self.stack.env},
            )
        pipes = self._shell
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        pipes.stdin.write(json.dumps(f"{LOOK}\n{code}") + "\n")
        pipes.stdin.flush()
        answer = json.loads(pipes.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self) -> None:
        if self._shell is not None:
            assert self._shell.stdin is not None
            self._shell.stdin.close()
            self._shell.wait(20)

    def replicas(self, slot: str = "nan") -> list[dict[str, Any]]:
        return self.ask(
            f"[replica(r) for r in Replica.objects.whole().filter(slot__name={slot!r})]"
        )

    def swap(self, pk: int) -> dict[str, Any]:
        return self.ask(f"swap(Swap.objects.get(pk={pk}))")

    def alerts(self) -> list[str]:
        return self.ask("list(Alert.objects.filter(closed_at=None).values_list('code', flat=True))")

    def plan(self, model: str, *, slot: str = "nan", start: bool = True, **choices: Any) -> int:
        """Planned and, with `start`, approved. Quick by default: 5 s to watch each replica."""
        choices = {"watch_seconds": 1, "drain_seconds": 60, **choices}
        code = f"""
from inference.swaps import plan
from members.models import User
admin = User.objects.filter(is_staff=True).first()
s = plan.plan(slot=Slot.objects.get(name={slot!r}), model=CatalogModel.objects.get(name={model!r}),
              actor=admin, **{choices!r})
if {start!r}:
    plan.approve(swap=s, actor=admin)
result = s.pk"""
        return int(self.do(code))

    def act(self, verb: str, swap: int) -> None:
        self.do(f"""
from inference.swaps import plan
from members.models import User
plan.{verb}(swap=Swap.objects.get(pk={swap}), actor=User.objects.filter(is_staff=True).first())
result = None""")

    def until(
        self,
        swap: int,
        *states: str,
        seconds: float = 90,
        look: Callable[[dict[str, Any]], Any] = lambda found: None,
    ) -> dict[str, Any]:
        def check() -> dict[str, Any] | None:
            found = self.swap(swap)
            look(found)
            return found if found["state"] in states else None

        found: dict[str, Any] = {}
        try:
            found = wait_until(check, seconds=seconds, what=f"swap {swap} {states}", every=0.3)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.swap(swap)}\n{self.replicas()}") from None
        return found

    def until_step(self, swap: int, step: str, *, seconds: float = 60) -> dict[str, Any]:
        """A replica of the swap's slot is in this state now."""

        def check() -> dict[str, Any] | None:
            return next((r for r in self.replicas() if r["state"] == step), None)

        return wait_until(check, seconds=seconds, what=f"swap {swap} at {step}", every=0.1)

    def settle(self, slot: str = "nan", *, seconds: float = 60) -> None:
        """Until every replica of the slot serves."""

        def check() -> bool:
            return all(r["state"] == "serving" for r in self.replicas(slot))

        try:
            wait_until(check, seconds=seconds, what=f"{slot} to serve", every=0.3)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.replicas(slot)}") from None

    def model(self, slot: str = "nan") -> str:
        return str(self.ask(f"Slot.objects.get(name={slot!r}).model.name"))

    def other_model(self, slot: str = "nan") -> str:
        """Another one of the catalogue that a replica of the slot could hold."""
        code = f"""
slot = Slot.objects.get(name={slot!r})
fits = CatalogModel.objects.offered().filter(kind=slot.kind, gpus_needed=slot.model.gpus_needed)
result = fits.exclude(pk=slot.model_id).order_by("weights_mib").first().name"""
        return str(self.do(code))

    # -- The machine room ----------------------------------------------------------------------

    @property
    def faults_file(self) -> Path:
        return self.stack.state_dir / "faults.json"

    @contextmanager
    def faults(self, **by_model: Any) -> Iterator[None]:
        """`faults(**{"small-model": ["hang"]})`; read by engines when they start."""
        self.faults_file.write_text(json.dumps(by_model))
        try:
            yield
        finally:
            self.faults_file.write_text("{}")

    def engine(self, replica: dict[str, Any], path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{replica['port']}{path}", timeout=10)

    def engines_folder(self) -> Path:
        return self.stack.state_dir / "engines"


def timed(action: Callable[[], Any]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began
