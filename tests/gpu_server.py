"""A GPU server that joins a running stack, empty or with a slot of its own that only it serves."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fleet import FAULTS, Fleet
from tests.ports import free_port
from tests.stack import ROOT, bare_environment
from tests.waiting import wait_until

NAME = "second"
MODELS = ("second-a", "second-b")
GPUS = 2
MADE = f"""
small = CatalogModel.objects.filter(kind="chat", gpus_needed=1).order_by("weights_mib").first()
for name in {MODELS!r}:
    small.pk, small.name, small.title, small.offered = None, name, name, True
    small.save()
Slot.objects.create(name={NAME!r}, title="Second", kind="chat",
                    number=max(Slot.objects.values_list("number", flat=True)) + 1)
"""
PUT_IN = """
from inference.fleet import replicas
slot, server = Slot.objects.get(name={name!r}), Server.objects.get(name={name!r})
model = CatalogModel.objects.get(name={model!r})
for gpu, port in enumerate({ports!r}):
    place = replicas.add(slot=slot, server=server, gpus=[gpu], port=port, actor=None)
    replicas.put_in_service(replica=place, actor=None, model=model)
"""
OUT = f"""
from inference.fleet import replicas
for place in Replica.objects.filter(server__name={NAME!r}):
    replicas.take_out(replica=place, actor=None, last=True, at_deadline="cut", drain_seconds=10)
"""
RUNS = f"server__name={NAME!r}, state__in=set(ReplicaState) - {{'off', 'failed'}}"
AWAY = f"""
from inference import wake
from inference.fleet import replicas, servers
for place in Replica.objects.filter(server__name={NAME!r}):
    replicas.remove(replica=place, actor=None)
Swap.objects.filter(slot__name={NAME!r}).delete()
PublicName.objects.filter(slot__name={NAME!r}).delete()
Slot.objects.filter(name={NAME!r}).delete()
CatalogModel.objects.filter(name__in={MODELS!r}).delete()
servers.delete(server=Server.objects.get(name={NAME!r}), actor=None)
wake.names()
"""


@dataclass
class GpuServer:
    """Joined by its own command, as an admin's page says; run by the command that it prints."""

    fleet: Fleet
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What it was told when it joined, and where its engines find today's faults."""
        text = (self.folder / "gpu.env").read_text()
        told = dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))
        state_dir = self.fleet.stack.state_dir
        marks = {"NAN_STACK": str(state_dir), "SIM_FAULTS_FILE": str(state_dir / FAULTS)}
        return {**bare_environment(), **told, **marks}

    def join(self) -> str:
        """The command that starts its worker."""
        token = self.fleet.do(f"""
from inference.fleet import servers
result = servers.invite(name={NAME!r}, seats=10, actor=None)[1]""")
        stack = self.fleet.stack
        options = {
            "address": "127.0.0.1",
            "file": self.folder / "gpu.env",
            "state": self.folder / "state",
            "devices": f"simulated:{GPUS}x98304",
            "engine": "simulator",
            "weights": stack.state_dir / "models",
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        run = subprocess.run(
            [sys.executable, "-m", "inference.gpu", "join", stack.site, *words],
            env={**bare_environment(), "NAN_JOIN_TOKEN": token},
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout.splitlines()[-1].strip()

    @contextmanager
    def worker(self, command: str) -> Iterator[None]:
        assert f"-Q gpu.{NAME}" in command
        words = shlex.split(command.partition("set +a; ")[2].rstrip(")"))
        with (self.folder / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [*words, "-l", "WARNING"], cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait(40)

    def _reports(self) -> bool:
        return bool(self.fleet.ask(f"len(Server.objects.get(name={NAME!r}).gpus) == {GPUS}"))

    def until_it_reports(self) -> None:
        wait_until(self._reports, seconds=30, what="the server to report its GPUs")

    def serve(self) -> None:
        ports = [free_port() for _ in range(GPUS)]
        self.fleet.do(f"{MADE}{PUT_IN.format(name=NAME, ports=ports, model=MODELS[0])}")
        self.fleet.settle(NAME)

    def leave(self) -> None:
        """The stack is as it was."""
        for swap in self.fleet.ask(
            f"list(Swap.objects.open().filter(slot__name={NAME!r}).values_list('pk', flat=True))"
        ):
            self.fleet.act("abort", swap)
            self.fleet.until(swap, "aborted", "failed", "done", seconds=90)
        self.fleet.do(OUT)
        wait_until(
            lambda: self.fleet.ask(f"not Replica.objects.filter({RUNS}).exists()"),
            seconds=60,
            what="its replicas to be off",
        )
        self.fleet.do(AWAY)


@contextmanager
def empty_server(fleet: Fleet) -> Iterator[GpuServer]:
    """Nothing runs there. What is put there is taken away in the end."""
    folder = fleet.stack.state_dir / NAME
    folder.mkdir(exist_ok=True)
    (folder / "gpu.env").unlink(missing_ok=True)
    server = GpuServer(fleet, folder)
    with server.worker(server.join()):
        server.until_it_reports()
        try:
            yield server
        finally:
            server.leave()


@contextmanager
def second_server(fleet: Fleet) -> Iterator[None]:
    """Its slot is called like itself and begins with the first of MODELS."""
    with empty_server(fleet) as server:
        server.serve()
        yield
