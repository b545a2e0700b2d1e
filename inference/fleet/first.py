"""What a new installation on one machine begins with: its server, a catalogue, two slots and
replicas of them. Whatever an admin has changed since is left alone."""

import time
from collections.abc import Callable, Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import F

from inference.fleet import catalogue, tell
from inference.fleet.replicas import put_in_service
from inference.models import CatalogModel, Goal, Kind, Replica, ReplicaState, Server, Slot

REPORT_SECONDS = 30


class NotServing(Exception):
    """Models don't answer in time; the text says which and why."""


@transaction.atomic
def create(*, server: str, seats: int, engine: str) -> Server:
    """The server and the catalogue; does nothing where there is a slot."""
    found, _created = Server.objects.get_or_create(name=server, defaults={"seats": seats})
    if not Slot.objects.exists():
        for entry in catalogue.read(catalogue.FIRST.get(engine, catalogue.FIRST["simulator"])):
            catalogue.add(entry)
        Slot.objects.create(name=settings.PUBLIC_MODEL, title="Chat", kind=Kind.CHAT, number=1)
        Slot.objects.create(
            name=f"{settings.PUBLIC_MODEL}-embed",
            title="Embeddings",
            kind=Kind.EMBEDDING,
            number=2,
        )
    return found


def fill(*, server: Server, ports: Sequence[int]) -> None:
    """One chat replica for each GPU and one for embeddings on the CPU, if there is none yet.
    Without a GPU one chat replica, on the CPU: a real engine is enough work for it."""
    if Replica.objects.exists():
        follow_ports(server=server, ports=ports)  # first: their engines are being started
        fetch_all(server)
        return
    fetch_all(server)
    chat, embedding = Slot.objects.get(number=1), Slot.objects.get(number=2)
    places = [(chat, [gpu["index"]]) for gpu in server.gpus[: len(ports) - 1]]
    places.append((embedding if places else chat, []))
    for number, ((slot, gpus), port) in enumerate(zip(places, ports, strict=False), start=1):
        replica = Replica.objects.create(
            slot=slot, server=server, gpus=gpus, port=port, number=number
        )
        put_in_service(replica=replica, actor=None, model=_first_model(slot))


def follow_ports(*, server: Server, ports: Sequence[int]) -> None:
    """The free ports of this run, for the replicas that this module made and whose engines ended
    with the run before: their old ports may be somebody else's now. Not of one that is being
    started: its engine has been told the old one; if that is taken, it fails and is next."""
    made = list(server.replicas.order_by("pk")[: len(ports)])
    for replica, port in zip(made, ports, strict=False):
        running = replica.report.get("state") in ("running", "stopping")
        taken = server.replicas.filter(port=port).exclude(pk=replica.pk).exists()
        told = running or replica.state == ReplicaState.STARTING
        if replica.port != port and not told and not taken:
            Replica.objects.filter(pk=replica.pk).update(port=port, version=F("version") + 1)


def fetch_all(server: Server) -> None:
    """The catalogue's weights, before any engine looks for its own. A fetch that fails is not
    waited for: the engine then says what is missing."""
    there = set(server.weights)
    models = {m.weights: m for m in CatalogModel.objects.all() if m.weights not in there}
    for model in models.values():
        tell.fetch(server, model.repo, model.revision, model.weights_mib)
    deadline = time.monotonic() + REPORT_SECONDS
    while time.monotonic() < deadline:
        fetches = server.report.get("fetches", {})
        states = [fetches.get(weights, {}).get("state") for weights in models]
        if all(state in ("done", "failed") for state in states):
            return
        tell.report(server)
        time.sleep(0.3)
        server.refresh_from_db()


def _first_model(slot: Slot) -> CatalogModel:
    """The one that the catalogue's file names first."""
    found = CatalogModel.objects.filter(kind=slot.kind).order_by("pk").first()
    if found is None:
        raise NotServing(f"The catalogue has no model of the kind {slot.kind}.")
    return found


def wait_for_report(server: Server) -> None:
    """Raises NotServing: its worker doesn't run, or can't reach the broker."""
    began = time.monotonic()
    seen = server.report_serial
    while server.report_serial == seen:
        if time.monotonic() - began > REPORT_SECONDS:
            raise NotServing(
                f"The server {server.name} has not reported within {REPORT_SECONDS} s: does its "
                "worker run?"
            )
        tell.report(server)
        time.sleep(0.3)
        server.refresh_from_db()


def wait_for_models(
    *, server: Server, ports: Sequence[int], seconds: float, say: Callable[[str], None]
) -> None:
    """Until every slot that has replicas in service is served by one and its name is published."""
    deadline, told = time.monotonic() + seconds, ""
    while waiting := _waiting():
        server.refresh_from_db()
        follow_ports(server=server, ports=ports)
        if time.monotonic() > deadline:
            raise NotServing(f"Not serving after {seconds:g} s: {waiting}. See /staff/slots/.")
        if waiting != told:
            say(f"Waiting for {waiting}")
            told = waiting
        time.sleep(0.3)


def _serves(replica: Replica) -> bool:
    """By the last report as well: after a restart of the machine the row still says so."""
    running = replica.report.get("state") == "running"
    return replica.state == ReplicaState.SERVING and running


def _waiting() -> str:
    """Which slots, and what their replicas are doing, for a console: in English."""
    found = []
    for slot in Slot.objects.filter(replicas__goal=Goal.SERVE).distinct():
        replicas = list(slot.replicas.filter(goal=Goal.SERVE).select_related("server"))
        states = [replica.state for replica in replicas]
        published = slot.public_names.live().exclude(confirmed="").exists()
        if not (published and any(_serves(replica) for replica in replicas)):
            found.append(f"{slot.name} ({', '.join(states)})")
    return ", ".join(found)
