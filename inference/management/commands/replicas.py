"""`manage.py replicas list|add|out|back|retry|remove|targets`: single engines' places."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from inference.fleet import replicas
from inference.management import operating
from inference.management.operating import Row, acting
from inference.models import Goal, Replica


class Command(BaseCommand):
    help = "Replicas, named by number or as SERVER:PORT. An engine is proven before it serves."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listed = verbs.add_parser("list")
        add = verbs.add_parser("add", help="a place; nothing runs there until `back`")
        targets = verbs.add_parser("targets", help="with --json: a file for Prometheus' file_sd")
        out = verbs.add_parser("out", help="drains it and stops its engine")
        back = verbs.add_parser("back", help="puts it in service, with its slot's model")
        retry = verbs.add_parser("retry", help="starts one that is down again, at once")
        remove = verbs.add_parser("remove", help="only when it is off")
        add.add_argument("slot")
        add.add_argument("server")
        add.add_argument("--port", type=int, required=True)
        add.add_argument("--gpus", type=int, nargs="*", default=[], help="none: the CPU")
        for verb in (out, back, retry, remove):
            verb.add_argument("replica")
        operating.can_drain(out)
        operating.can_end_a_slot(out)
        back.add_argument("--model", help="the slot's first one, if it has none yet")
        operating.can_act_as(add, out, back, retry, remove)
        operating.can_print_json(listed, targets, add, out, back, retry, remove)

    def handle(self, *args: Any, **options: Any) -> None:
        operating.run(self, options)

    def do_list(self, options: dict[str, Any]) -> list[Row]:
        return [_row(one) for one in Replica.objects.whole()]

    def do_targets(self, options: dict[str, Any]) -> list[Row]:
        """Of engines that are to serve, each with its slot's place in the pool as label."""
        wanted = Replica.objects.whole().filter(goal=Goal.SERVE).exclude(server__address="")
        return [
            {
                "targets": [f"{one.server.address}:{one.port}"],
                "labels": {"slot": one.slot.backend},
            }
            for one in wanted
        ]

    def do_add(self, options: dict[str, Any]) -> list[Row]:
        made = replicas.add(
            slot=operating.slot(options["slot"]),
            server=operating.server(options["server"]),
            gpus=options["gpus"],
            port=options["port"],
            actor=acting(options),
        )
        return [_row(made)]

    def do_out(self, options: dict[str, Any]) -> list[Row]:
        one = operating.replica(options["replica"])
        chosen = operating.drain(options)
        replicas.take_out(replica=one, actor=acting(options), last=options["last"], **chosen)
        return _again(one)

    def do_back(self, options: dict[str, Any]) -> list[Row]:
        one = operating.replica(options["replica"])
        model = operating.model(options["model"]) if options["model"] else None
        replicas.put_in_service(replica=one, actor=acting(options), model=model)
        return _again(one)

    def do_retry(self, options: dict[str, Any]) -> list[Row]:
        one = operating.replica(options["replica"])
        replicas.retry(replica=one, actor=acting(options))
        return _again(one)

    def do_remove(self, options: dict[str, Any]) -> list[Row]:
        one = operating.replica(options["replica"])
        row = _row(one)
        replicas.remove(replica=one, actor=acting(options))
        return [row]


def _again(one: Replica) -> list[Row]:
    return [_row(Replica.objects.whole().get(pk=one.pk))]


def _row(one: Replica) -> Row:
    return {
        "id": one.pk,
        "place": str(one),
        "slot": one.slot.name,
        "gpus": one.gpus,
        "goal": one.goal,
        "state": one.state,
        "model": one.model.name if one.model else None,
        "in_flight": one.in_flight,
        "error": one.error_code,
        "why": operating.sentence(one.error_code),
    }
