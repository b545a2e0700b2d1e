"""What the fleet's commands have in common: who acts, how rows are printed, how a refusal ends.

Everything that commands print is English, as their help is.
"""

import argparse
import json
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import translation

from inference.fleet.errors import FleetRefused
from inference.fleet.words import WORDS, words
from inference.models import CatalogModel, Replica, Server, Slot

Row = dict[str, Any]


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
            raise CommandError(f"{words(refusal.code)} Nothing was changed.") from None
        if options.get("json"):
            command.stdout.write(json.dumps(rows, default=str))
            return
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


def server(name: str) -> Server:
    return _one(Server, "server", name=name)


def slot(name: str) -> Slot:
    return _one(Slot, "slot", name=name)


def model(name: str) -> CatalogModel:
    return _one(CatalogModel, "model", name=name)


def replica(text: str) -> Replica:
    """By its number, or by where it stands: gpu-1:8101."""
    name, _colon, port = text.partition(":")
    if port.isdecimal():
        return _one(Replica, "replica", server__name=name, port=int(port))
    if text.isdecimal():
        return _one(Replica, "replica", pk=int(text))
    raise CommandError(f"{text} is neither the number of a replica nor SERVER:PORT.")


def _one(kind: Any, noun: str, **where: Any) -> Any:
    found = kind.objects.filter(**where).first()
    if found is None:
        named = ":".join(map(str, where.values()))
        raise CommandError(f"There is no {noun} {named}. `manage.py {noun}s list` shows them.")
    return found
