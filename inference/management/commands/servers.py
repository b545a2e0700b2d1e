"""`manage.py servers list|add`: the GPU servers and the seats that they carry."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from inference.models import Server


class Command(BaseCommand):
    help = "Lists the servers, or adds one with its seats (adding it again changes its seats)."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        for name in ("list", "add"):
            verb = verbs.add_parser(name)
            verb.add_argument("--json", action="store_true", default=False, help="for scripts")
            if name == "add":
                verb.add_argument("name")
                verb.add_argument("--seats", type=int, required=True)
                verb.add_argument(
                    "--first", action="store_true", help="only if there is no server yet"
                )

    def handle(self, *args: Any, **options: Any) -> None:
        rows = Server.objects.all()
        if options["verb"] == "add" and not (options["first"] and rows.exists()):
            server, _created = Server.objects.update_or_create(
                name=options["name"], defaults={"seats": options["seats"], "active": True}
            )
            rows = rows.filter(pk=server.pk)
        found = [{"name": s.name, "seats": s.seats, "active": s.active} for s in rows]
        if options["json"]:
            self.stdout.write(json.dumps(found))
            return
        for row in found:
            state = "" if row["active"] else " (out of service)"
            self.stdout.write(f"{row['name']}: {row['seats']} seats{state}")
