"""manage.py waitlist list|approve|reject|ask|undo: what the staff page does, for scripts."""

import argparse
import json
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from members import waitlist
from members.models import Application, Decision, User


class Command(BaseCommand):
    help = "The waitlist: who is on it, and decisions about people by e-mail address."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="machine-readable")
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="who waits, first come first")
        listing.add_argument("--limit", type=int, default=200)
        approve = verbs.add_parser("approve", help="lets these people in")
        approve.add_argument("email", nargs="+")
        approve.add_argument("--beyond-capacity", action="store_true")
        reject = verbs.add_parser("reject", help="needs a reason: they will read it")
        reject.add_argument("email", nargs="+")
        reject.add_argument("--reason", choices=Decision.Reason.values, default="other")
        reject.add_argument("--text", default="", help="the reason in your own words")
        ask = verbs.add_parser("ask", help="asks one person something, by mail and on her page")
        ask.add_argument("email", nargs=1)
        ask.add_argument("--question", required=True)
        undo = verbs.add_parser("undo", help="takes back what is not final yet")
        undo.add_argument("email", nargs="+")
        for verb in (listing, approve, reject, ask, undo):
            verb.add_argument(
                "--json", action="store_true", default=argparse.SUPPRESS, help="machine-readable"
            )
        for verb in (approve, reject, ask, undo):
            verb.add_argument("--as", dest="admin", help="e-mail of the admin who decides")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rows = getattr(self, f"do_{options['verb']}")(options)
        except waitlist.Refused as refusal:
            raise CommandError(str(refusal)) from None
        except waitlist.NoSeats as full:
            raise CommandError(
                f"{full.wanted} to approve, {full.free} seats free; nobody was approved. "
                "Add --beyond-capacity to go on all the same."
            ) from None
        self._print(rows, as_json=options["json"])

    def do_list(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        rows = Application.objects.waiting().in_order().select_related("user")[: options["limit"]]
        return [_line(row) for row in rows]

    def do_approve(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        outcome = waitlist.approve(
            applications=self._find(options["email"]),
            actor=acting(options["admin"]),
            beyond_capacity=options["beyond_capacity"],
        )
        return self._done(outcome)

    def do_reject(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        outcome = waitlist.reject(
            applications=self._find(options["email"]),
            actor=acting(options["admin"]),
            reason_code=options["reason"],
            reason=options["text"],
        )
        return self._done(outcome)

    def do_ask(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        outcome = waitlist.ask(
            application=self._find(options["email"])[0],
            actor=acting(options["admin"]),
            question=options["question"],
        )
        return self._done(outcome)

    def do_undo(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = {email.lower() for email in options["email"]}
        rows = Decision.objects.undoable().filter(application__user__email__in=wanted)
        found = dict(rows.values_list("application__user__email", "pk"))
        missing = sorted(wanted - set(found))
        if missing:
            raise CommandError(f"Nothing to undo for {', '.join(missing)}. Nothing was changed.")
        undone = waitlist.undo(decisions=found.values(), actor=acting(options["admin"]))
        return self._lines(decision.application_id for decision in undone)

    def _find(self, emails: list[str]) -> list[int]:
        wanted = {email.lower() for email in emails}
        rows = Application.objects.waiting().filter(user__email__in=wanted)
        found = dict(rows.values_list("user__email", "pk"))
        missing = sorted(wanted - set(found))
        if missing:
            raise CommandError(f"Not waiting: {', '.join(missing)}. Nobody was changed.")
        return list(found.values())

    def _done(self, outcome: waitlist.Outcome) -> list[dict[str, Any]]:
        return self._lines(decision.application_id for decision in outcome.decisions)

    def _lines(self, pks: Iterable[int]) -> list[dict[str, Any]]:
        rows = Application.objects.filter(pk__in=list(pks)).select_related("user")
        return [_line(row) for row in rows.order_by("pk")]

    def _print(self, rows: list[dict[str, Any]], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(rows))
            return
        for row in rows:
            self.stdout.write(f"{row['state']:<18} {row['applied'][:10]}  {row['email']}")
        self.stdout.write(f"{len(rows)} in all")


def _line(row: Application) -> dict[str, Any]:
    return {"email": row.user.email, "state": row.state, "applied": row.applied_at.isoformat()}


def acting(email: str | None) -> User | None:
    """The admin in whose name a command acts; nobody if none is named."""
    if not email:
        return None
    admin = User.objects.filter(email=email.lower(), is_staff=True, is_active=True).first()
    if admin is None:
        raise CommandError(f"{email} is not an admin here.")
    return admin
