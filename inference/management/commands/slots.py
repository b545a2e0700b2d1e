"""`manage.py slots list|add`: what members call and vote on."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from inference.management import operating
from inference.management.operating import Row
from inference.models import Kind, PublicName, Slot
from inference.staff.forms import SlotForm


class Command(BaseCommand):
    help = "Slots. A new one serves nothing until a replica brings its first model."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listed = verbs.add_parser("list")
        add = verbs.add_parser("add")
        add.add_argument("name", help="what members write as the model's name; it stays")
        add.add_argument("--title", required=True)
        add.add_argument("--kind", choices=Kind.values, default=Kind.CHAT.value)
        add.add_argument("--number", type=int, help="its backend in the pool: 1 to 8")
        add.add_argument("--least-concurrent", type=int, default=0)
        add.add_argument("--least-context", type=int, default=0)
        operating.can_print_json(listed, add)

    def handle(self, *args: Any, **options: Any) -> None:
        operating.run(self, options)

    def do_list(self, options: dict[str, Any]) -> list[Row]:
        slots = Slot.objects.select_related("model").prefetch_related("replicas__server")
        return [_row(slot) for slot in slots]

    def do_add(self, options: dict[str, Any]) -> list[Row]:
        form = SlotForm({**options, "number": options["number"] or Slot.free_number()})
        if not form.is_valid():
            raise operating.problems(form)
        return [_row(form.save())]


def _row(slot: Slot) -> Row:
    names = PublicName.objects.live().filter(slot=slot)
    return {
        "name": slot.name,
        "kind": slot.kind,
        "model": slot.model.name if slot.model else None,
        "since": slot.model_since,
        "names": {name.name: name.retire_at for name in names},
        "replicas": [f"{one}={one.state}" for one in slot.replicas.all()],
    }
