"""manage.py first_fleet: what an installation on one machine begins with, and waiting for it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from inference.fleet import first


class Command(BaseCommand):
    help = (
        "Where there is no slot yet: a server, a catalogue, slots and replicas in service. "
        "With --wait it returns when models answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--server", required=True)
        parser.add_argument("--seats", type=int, required=True)
        parser.add_argument("--engine", choices=("simulator", "vllm", "none"), required=True)
        parser.add_argument("--ports", type=int, nargs="+", required=True)
        parser.add_argument("--wait", type=int, default=0, help="seconds")

    def handle(self, *args: Any, **options: Any) -> None:
        engine, ports = options["engine"], options["ports"]
        server = first.create(server=options["server"], seats=options["seats"], engine=engine)
        if engine == "none":
            return
        try:
            first.wait_for_report(server)
            first.fill(server=server, ports=ports)
            if wait := options["wait"]:
                first.wait_for_models(
                    server=server, ports=ports, seconds=wait, say=self.stdout.write
                )
        except first.NotServing as problem:
            raise CommandError(str(problem)) from None
