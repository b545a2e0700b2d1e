"""The fleet of a running stack, as an admin and the machine room see it."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from inference.pool import Pool, set_state
from tests.load import LongStream
from tests.shell import Shell
from tests.stack import Stack, bare_environment
from tests.waiting import wait_until

FAULTS = "faults.json"
ALONE = {"SWAP_SECOND_ADMIN": "0"}
"""Who plans by a shell approves it too; on pages it takes two."""
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


@dataclass
class Fleet:
    stack: Stack
    _shell: Shell = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._shell = Shell({**bare_environment(), **self.stack.env, **ALONE})

    def ask(self, expression: str) -> Any:
        return self.do(f"result = {expression}")

    def do(self, code: str) -> Any:
        """Runs `code`, which assigns `result`, with Django set up."""
        return self._shell.do(f"{LOOK}\n{code}")

    def close(self) -> None:
        self._shell.close()

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
        later = choices.pop("in_seconds", None)
        when = f"timezone.now() + timedelta(seconds={later})" if later else "None"
        code = f"""
from datetime import timedelta
from django.utils import timezone
from inference.swaps import plan
from members.models import User
admin = User.objects.filter(is_staff=True).first()
s = plan.plan(slot=Slot.objects.get(name={slot!r}), model=CatalogModel.objects.get(name={model!r}),
              actor=admin, start_at={when}, **{choices!r})
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

        what = f"swap {swap} {states}"
        found: dict[str, Any] = self.wait(check, seconds=seconds, what=what, swap=swap)
        return found

    def wait(
        self,
        check: Callable[[], Any],
        *,
        seconds: float,
        what: str,
        slot: str = "nan",
        swap: int = 0,
        every: float = 0.3,
    ) -> Any:
        """`wait_until`, which tells of these rows when it gives up."""
        try:
            return wait_until(check, seconds=seconds, what=what, every=every)
        except AssertionError as error:
            told = [self.swap(swap)] if swap else []
            raise AssertionError("\n".join(map(str, [error, *told, self.replicas(slot)]))) from None

    def until_step(self, swap: int, step: str, *, seconds: float = 60) -> dict[str, Any]:
        """A replica of the swap's slot is in this state now."""

        def check() -> dict[str, Any] | None:
            return next((r for r in self.replicas() if r["state"] == step), None)

        return wait_until(check, seconds=seconds, what=f"swap {swap} at {step}", every=0.1)

    def starts(self, model: str) -> int:
        """How many engines were ever started for the last swap to this model."""
        return int(
            self.do(f"""
swap = Swap.objects.filter(to_model__name={model!r}).first()
events = swap.events.filter(what="starting", model__name={model!r})
result = events.count()""")
        )

    @property
    def pool_dir(self) -> Path:
        return Path(self.stack.env["POOL_DIR"])

    def settle(self, slot: str = "nan", *, seconds: float = 60) -> None:
        """Until every replica of the slot serves."""

        def check() -> bool:
            return all(r["state"] == "serving" for r in self.replicas(slot))

        self.wait(check, seconds=seconds, what=f"{slot} to serve", slot=slot)

    def model(self, slot: str = "nan") -> str:
        return str(self.ask(f"Slot.objects.get(name={slot!r}).model.name"))

    def end_swaps(self) -> None:
        for swap in self.ask("list(Swap.objects.open().values_list('pk', flat=True))"):
            self.act("abort" if self.swap(swap)["state"] == "running" else "cancel", swap)
            self.until(swap, "aborted", "failed", "cancelled", "done", seconds=120)

    def clear(self) -> None:
        """Every replica serves and no swap is open, whatever a failed test has left."""
        self.end_swaps()
        for replica in self.replicas():
            if replica["goal"] == "off":
                self.act_on_replica("put_in_service", replica["number"])
        for replica in self.replicas():
            if replica["goal"] == "off":
                self.act_on_replica("put_in_service", replica["number"])
        self.settle(seconds=90)

    def go_home(self, home: str) -> None:
        """Clear, and back to the model that the tests begin with."""
        self.clear()
        if self.model() != home:
            self.until(self.plan(home, at_deadline="cut"), "done", seconds=150)

    def other_model(
        self, *, slot: str = "nan", has: Sequence[str] = (), biggest: bool = False
    ) -> str:
        """The smallest other one that a replica of the slot could hold, with these abilities."""
        code = f"""
slot = Slot.objects.get(name={slot!r})
fits = CatalogModel.objects.offered().filter(kind=slot.kind, gpus_needed=slot.model.gpus_needed)
fits = fits.filter(capabilities__contains={list(has)!r}).exclude(pk=slot.model_id)
result = fits.order_by({"-weights_mib" if biggest else "weights_mib"!r}).first().name"""
        return str(self.do(code))

    def restart_replica(self, number: int) -> None:
        """Out and in again, so that its engine starts with the faults of the day."""
        self.act_on_replica("take_out", number)
        self.until_replica(number, "off")
        self.act_on_replica("put_in_service", number)
        self.until_replica(number, "serving")

    def act_on_replica(self, verb: str, number: int, **choices: Any) -> None:
        self.do(f"""
from inference.fleet import replicas
from members.models import User
replicas.{verb}(replica=Replica.objects.get(slot__name="nan", number={number}),
                actor=User.objects.filter(is_staff=True).first(), **{choices!r})
result = None""")

    def until_replica(self, number: int, state: str, *, seconds: float = 60) -> dict[str, Any]:
        def check() -> dict[str, Any] | None:
            found = self.replicas()[number - 1]
            return found if found["state"] == state else None

        what = f"replica {number} to be {state}"
        return wait_until(check, seconds=seconds, what=what, every=0.1)

    def allowed_to_load(self, model: str, *, seconds: int) -> AbstractContextManager[None]:
        return self._said_of(model, "load_seconds", seconds)

    def sized(self, model: str, *, mib: int) -> AbstractContextManager[None]:
        return self._said_of(model, "weights_mib", mib)

    def in_two_processes(self, model: str) -> AbstractContextManager[None]:
        """Its next engines, as vLLM's: the second one holds the memory."""
        return self._said_of(model, "environment", {"SIM_ENGINE_CORE": "1"})

    def slow_to_answer(self, model: str, *, ms: int) -> AbstractContextManager[None]:
        """Its next engines, each request; so a smoke test takes as long as one of a real engine."""
        return self._said_of(model, "environment", {"SIM_TTFT_MS": str(ms)})

    @contextmanager
    def _said_of(self, model: str, what: str, value: Any) -> Iterator[None]:
        rows = f"CatalogModel.objects.filter(name={model!r})"
        before = self.ask(f"{rows}.get().{what}")
        self.do(f"{rows}.update({what}={value!r}); result = None")
        try:
            yield
        finally:
            self.do(f"{rows}.update({what}={before!r}); result = None")

    def refusals(self, swap: int) -> list[str]:
        """Codes of the checks before the swap that its first replica did not pass."""
        checks = f"SwapReplica.objects.get(swap={swap}, position=1).preflight"
        return self.ask(f"[check['code'] for check in {checks} if not check['ok']]")

    # -- The machine room ----------------------------------------------------------------------

    @contextmanager
    def faults(self, by_model: Mapping[str, Any]) -> Iterator[None]:
        """`{"small-model": ["hang"]}`, or `"*"` of all; read by engines, and by their check, when
        they start. Told by repository: the old names of a slot are served by its new engine."""
        repos = dict(self.ask("list(CatalogModel.objects.values_list('name', 'repo'))"))
        file = self.stack.state_dir / FAULTS
        file.write_text(json.dumps({repos.get(name, name): by_model[name] for name in by_model}))
        try:
            yield
        finally:
            file.write_text("{}")

    def weights_of(self, model: str) -> Path:
        """The folder of the model's weights at its commit."""
        repo, revision = self.ask(
            f"CatalogModel.objects.values_list('repo', 'revision').get(name={model!r})"
        )
        hub = self.stack.state_dir / "models" / "hub"
        return hub / f"models--{repo.replace('/', '--')}" / "snapshots" / revision

    def engine_processes(self, number: int) -> list[psutil.Process]:
        """Those of the replica's engine, found by the port in its command line."""
        port = str(self.replicas()[number - 1]["port"])
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                line = process.cmdline()
                if "inference.simulator" in line and f"--port={port}" in line:
                    found.append(process)
        return found

    @contextmanager
    def foreign_memory(self, *, gpu: int, mib: int) -> Iterator["subprocess.Popen[bytes]"]:
        """Held by a process that is not ours."""
        process = subprocess.Popen(["sleep", "600"])
        holder = self.stack.state_dir / "engines" / "gpus" / f"gpu{gpu}" / str(process.pid)
        holder.write_text(str(mib))
        try:
            yield process
        finally:
            holder.unlink(missing_ok=True)
            process.kill()
            process.wait()

    def engines_started(self) -> set[Path]:
        """The folders of all engines that the stack's server has ever started and not forgotten."""
        return set((self.stack.state_dir / "engines" / "engines").glob("r*-g*"))

    def free_memory(self) -> None:
        """What a person does on the server: ends what held the GPUs' memory."""
        alive = {str(pid) for pid in psutil.pids()}
        for held in (self.stack.state_dir / "engines" / "gpus").glob("gpu*/*"):
            if held.name not in alive:
                held.unlink()

    @contextmanager
    def long_stream(self, number: int, key: str, *, seconds: float) -> Iterator[LongStream]:
        """One that runs at this replica: the other takes no new ones at that moment."""
        pool = Pool(self.pool_dir)
        others = [r for r in self.replicas() if r["number"] != number]
        pool.apply([set_state(("slot01", other["number"]), "drain") for other in others])
        stream = LongStream(self.stack.api, key, tokens=int(seconds * 400))
        stream.start()
        port = self.replicas()[number - 1]["port"]

        def runs() -> bool:
            seen = httpx.get(f"http://127.0.0.1:{port}/_sim/requests", timeout=5).json()
            return bool(seen["running"] >= 1)

        wait_until(runs, seconds=20, what="the stream to begin")
        self.settle()
        wait_until(
            lambda: {pool.look().servers["slot01", o["number"]].status for o in others} == {"UP"},
            seconds=20,
            what="the other replica to be back",
        )
        try:
            yield stream
        finally:
            stream.join(90)
