"""`manage.py models list|show|add|offer|withdraw`: the catalogue of what can be served."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.management import operating
from inference.management.operating import Row
from inference.models import CatalogModel
from inference.staff import in_use
from inference.staff.model_form import ModelForm
from nan.unreadable import read_json

AS_TEXT = ("config", "flags", "environment")


class Command(BaseCommand):
    help = "The catalogue: models pinned to a commit, with what an engine must be told."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listed = verbs.add_parser("list")
        show = verbs.add_parser("show", help="as JSON that `add` takes")
        add = verbs.add_parser("add", help="adds or changes one, from JSON")
        add.add_argument("file", help="one object with the form's fields; - for standard input")
        offer = verbs.add_parser("offer", help="can be chosen")
        withdraw = verbs.add_parser("withdraw", help="can't be chosen; what runs goes on")
        for verb in (show, offer, withdraw):
            verb.add_argument("name")
        operating.can_print_json(listed, show, add, offer, withdraw)

    def handle(self, *args: Any, **options: Any) -> None:
        operating.run(self, {**options, "json": options.get("json") or options["verb"] == "show"})

    def do_list(self, options: dict[str, Any]) -> list[Row]:
        return [_row(model) for model in CatalogModel.objects.all()]

    def do_show(self, options: dict[str, Any]) -> list[Row]:
        shown = ModelForm(instance=operating.model(options["name"])).initial
        return [{name: shown[name] for name in ModelForm.Meta.fields}]

    def do_add(self, options: dict[str, Any]) -> list[Row]:
        said = _read(options["file"])
        found = CatalogModel.objects.filter(name=str(said.get("name", ""))).first()
        form = ModelForm({**_defaults(), **_as_typed(said)}, instance=found)
        if not form.is_valid():
            raise operating.problems(form)
        saved = form.save()
        in_use.note_change(saved, form.changes, added=found is None, actor=None)
        return [_row(saved)]

    def do_offer(self, options: dict[str, Any]) -> list[Row]:
        return self._offer(options["name"], offered=True)

    def do_withdraw(self, options: dict[str, Any]) -> list[Row]:
        return self._offer(options["name"], offered=False)

    def _offer(self, name: str, *, offered: bool) -> list[Row]:
        model = operating.model(name)
        CatalogModel.objects.filter(pk=model.pk).update(offered=offered)
        model.refresh_from_db()
        return [_row(model)]


def _read(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        said = read_json(text)
    except OSError as error:
        raise CommandError(f"{file} can't be read: {error.strerror}.") from None
    except ValueError as error:
        raise CommandError(f"{file} is not JSON that can be used: {error}.") from None
    said = said[0] if isinstance(said, list) and len(said) == 1 else said
    if not isinstance(said, dict):
        raise CommandError(f"{file} must hold one JSON object.")
    if unknown := sorted(set(said) - set(ModelForm.Meta.fields)):
        raise CommandError(f"Unknown: {', '.join(unknown)}. Nothing was changed.")
    return said


def _defaults() -> dict[str, Any]:
    """A browser sends what the empty form shows; a file may leave it out."""
    names = ("kind", "gpus_needed", "memory_mib", "max_output", "load_seconds", "offered")
    return {name: getattr(CatalogModel(), name) for name in names}


def _as_typed(said: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(value) if name in AS_TEXT else value for name, value in said.items()}


def _row(model: CatalogModel) -> Row:
    return {
        "name": model.name,
        "kind": model.kind,
        "repo": model.repo,
        "revision": model.revision,
        "context_length": model.context_length,
        "capabilities": model.capabilities,
        "gpus_needed": model.gpus_needed,
        "offered": model.offered,
    }
