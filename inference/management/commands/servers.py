"""`manage.py servers list|show|add|invite|out|back|delete`: GPU servers and the seats on them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from inference.fleet import replicas, servers
from inference.management import operating
from inference.management.operating import Row, acting
from inference.models import Server
from inference.staff.forms import InviteForm


class Command(BaseCommand):
    help = "GPU servers: what they report, how many members they carry, in and out of service."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listed = verbs.add_parser("list")
        show = verbs.add_parser("show", help="everything that it last reported")
        add = verbs.add_parser("add", help="sets the seats of a server, new or not")
        invite = verbs.add_parser("invite", help="prints a one-time token for a new host")
        out = verbs.add_parser("out", help="drains and stops all its replicas")
        back = verbs.add_parser("back", help="starts them again")
        delete = verbs.add_parser("delete", help="only one on which no replica stands")
        for verb in (show, add, invite, out, back, delete):
            verb.add_argument("name")
        add.add_argument("--seats", type=operating.upto(10_000), required=True)
        add.add_argument("--first", action="store_true", help="only if there is no server yet")
        invite.add_argument("--seats", type=operating.upto(10_000), default=0)
        operating.can_drain(out)
        operating.can_end_a_slot(out)
        operating.can_act_as(invite, out, back, delete)
        operating.can_print_json(listed, show, add, invite, out, back, delete)

    def handle(self, *args: Any, **options: Any) -> None:
        operating.run(self, options)

    def do_list(self, options: dict[str, Any]) -> list[Row]:
        return [_row(server) for server in Server.objects.all()]

    def do_show(self, options: dict[str, Any]) -> list[Row]:
        server = operating.server(options["name"])
        return [{**_row(server), "address": server.address, "report": server.report}]

    def do_add(self, options: dict[str, Any]) -> list[Row]:
        if options["first"] and Server.objects.exists():
            return self.do_list(options)
        server, _created = Server.objects.update_or_create(
            name=options["name"], defaults={"seats": options["seats"], "active": True}
        )
        return [_row(server)]

    def do_invite(self, options: dict[str, Any]) -> list[Row]:
        form = InviteForm({"name": options["name"], "seats": options["seats"]})
        if not form.is_valid():
            raise operating.problems(form)
        server, token = servers.invite(**form.cleaned_data, actor=acting(options))
        note = "shown once; works once, within 24 hours"
        return [{"name": server.name, "token": token, "note": note}]

    def do_out(self, options: dict[str, Any]) -> list[Row]:
        server = operating.server(options["name"])
        emptied = [slot.name for slot in replicas.left_empty(server)] if options["last"] else []
        chosen = {**operating.drain(options), "may_empty": emptied}
        replicas.take_server_out(server=server, actor=acting(options), **chosen)
        server.refresh_from_db()
        return [_row(server)]

    def do_back(self, options: dict[str, Any]) -> list[Row]:
        server = operating.server(options["name"])
        replicas.put_server_back(server=server, actor=acting(options))
        server.refresh_from_db()
        return [_row(server)]

    def do_delete(self, options: dict[str, Any]) -> list[Row]:
        server = operating.server(options["name"])
        row = _row(server)
        servers.delete(server=server, actor=acting(options))
        return [row]


def _row(server: Server) -> Row:
    return {
        "name": server.name,
        "seats": server.seats,
        "active": server.active,
        "gpus": len(server.gpus),
        "engine": server.engine,
        "reported_at": server.reported_at,
        "silent": server.silent(timezone.now()),
        "replicas": [f"{one}={one.state}" for one in server.replicas.select_related("server")],
    }
