"""What the fleet's commands have in common: who acts, how rows are printed, how a refusal ends.

Everything that commands print is English, as their help is.
"""

import argparse
import json
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Model, QuerySet
from django.utils import translation

from inference.fleet.errors import FleetRefused
from inference.fleet.words import WORDS, said
from inference.models import CatalogModel, Replica, Server, Slot

Row = dict[str, Any]
Found = TypeVar("Found", bound=Model)


def upto(most: int) -> Callable[[str], int]:
    """For argparse: a whole number from 0."""

    def read(text: str) -> int:
        if not (text.isdecimal() and int(text) <= most):
            raise argparse.ArgumentTypeError(f"a number from 0 to {most}")
        return int(text)

    return read


def can_print_json(*verbs: ArgumentParser) -> None:
    for verb in verbs:
        verb.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="for scripts"
        )


def can_act_as(*verbs: ArgumentParser, required: bool = False) -> None:
    for verb in verbs:
        verb.add_argument(
            "--as", dest="admin", required=required, help="e-mail of the admin who decides"
        )


def can_drain(verb: ArgumentParser) -> None:
    verb.add_argument("--drain-minutes", type=upto(60), default=15, help="wait at most (15)")
    verb.add_argument(
        "--at-deadline",
        choices=("cut", "abort"),
        default="cut",
        help="what still runs then is cut off (cut), or it all stays in service (abort)",
    )


def can_end_a_slot(verb: ArgumentParser) -> None:
    verb.add_argument(
        "--last",
        action="store_true",
        help="also if no other replica of a slot goes on serving: members get errors there",
    )


def drain(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "drain_seconds": options["drain_minutes"] * 60,
        "at_deadline": options["at_deadline"],
    }


def run(command: BaseCommand, options: dict[str, Any]) -> None:
    """Calls the method of the verb and prints its rows; a refusal is told and ends with 1."""
    with translation.override("en"):
        try:
            rows: Sequence[Row] = getattr(command, f"do_{options['verb']}")(options)
        except FleetRefused as refusal:
            raise CommandError(f"{said(refusal)} Nothing was changed.") from None
        show(command, rows, as_json=bool(options.get("json")))


def show(
    command: BaseCommand, found: Row | Sequence[Row], *, as_json: bool, nothing: str = ""
) -> None:
    """A line for each row, or all of it as one JSON value; `nothing` is said where no row is."""
    if as_json:
        command.stdout.write(json.dumps(found, default=str))
        return
    rows = [found] if isinstance(found, dict) else found
    if nothing and not rows:
        command.stdout.write(nothing)
    for row in rows:
        command.stdout.write("  ".join(f"{name}={value}" for name, value in row.items()))


def acting(options: dict[str, Any]) -> Any:
    """The admin in whose name it is done; None (the system) if none is named."""
    email = options["admin"]
    if not email:
        return None
    people = get_user_model().objects.filter(is_staff=True, is_active=True)
    admin = people.filter(email__iexact=email).first()
    if admin is None:
        raise CommandError(f"{email} is not an admin here.")
    return admin


def sentence(code: str) -> str:
    """Empty for no code; a code without words stays as it is."""
    return str(WORDS.get(code, code))


def problems(form: Any) -> CommandError:
    """What a form refuses, one line for each field."""
    lines = [f"{name}: {' '.join(map(str, texts))}" for name, texts in form.errors.items()]
    return CommandError("\n".join([*lines, "Nothing was changed."]))


def server(name: str) -> Server:
    return _one(Server.objects.filter(name=name), "server", name)


def slot(name: str) -> Slot:
    return _one(Slot.objects.filter(name=name), "slot", name)


def model(name: str) -> CatalogModel:
    return _one(CatalogModel.objects.filter(name=name), "model", name)


def replica(text: str) -> Replica:
    """By its number, or by where it stands: gpu-1:8101."""
    name, _colon, port = text.partition(":")
    if port.isdecimal():
        found = Replica.objects.whole().filter(server__name=name, port=int(port))
    elif text.isdecimal():
        found = Replica.objects.whole().filter(pk=int(text))
    else:
        raise CommandError(f"{text} is neither the number of a replica nor SERVER:PORT.")
    return _one(found, "replica", text)


def _one(rows: QuerySet[Found], noun: str, named: str) -> Found:
    found = rows.first()
    if found is None:
        raise CommandError(f"There is no {noun} {named}. `manage.py {noun}s list` shows them.")
    return found
