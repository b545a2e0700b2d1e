"""manage.py members list|suspend|reinstate|limits|erase: what the staff pages do, for scripts."""

import argparse
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from members import membership
from members.forms import LimitsForm
from members.management.commands.waitlist import acting
from members.models import Membership, User


class Command(BaseCommand):
    help = "Members: who they are, and what is decided about them by e-mail address."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="machine-readable")
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list")
        listing.add_argument("--state", choices=Membership.State.values)
        suspend = verbs.add_parser("suspend", help="ends sessions, holds the key")
        suspend.add_argument("email", nargs="+")
        suspend.add_argument("--reason", required=True)
        reinstate = verbs.add_parser("reinstate")
        reinstate.add_argument("email", nargs="+")
        limits = verbs.add_parser("limits", help="what these members may do at the gateway")
        limits.add_argument("email", nargs="+")
        limits.add_argument("--rpm", type=int, help="requests a minute; left out: as for all")
        limits.add_argument("--parallel", type=int, help="at the same time; left out: as for all")
        limits.add_argument("--reason", required=True)
        erase = verbs.add_parser("erase", help="deletes a person and her data, at her request")
        erase.add_argument("email", nargs="+")
        for verb in (listing, suspend, reinstate, limits, erase):
            verb.add_argument(
                "--json", action="store_true", default=argparse.SUPPRESS, help="machine-readable"
            )
        for verb in (suspend, reinstate, limits):
            verb.add_argument("--as", dest="admin", help="e-mail of the admin who decides")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rows = getattr(self, f"do_{options['verb']}")(options)
        except membership.NotPossible as problem:
            raise CommandError(str(problem)) from None
        lines = [_line(row) for row in rows]
        if options["json"]:
            self.stdout.write(json.dumps(lines))
            return
        for line in lines:
            pending = "  (pending at the gateway)" if line["pending"] else ""
            self.stdout.write(f"{line['state']:<10} {line['since'][:10]}  {line['email']}{pending}")

    def do_list(self, options: dict[str, Any]) -> list[Membership]:
        rows = Membership.objects.filter(user__isnull=False).select_related("user").order_by("pk")
        return list(rows.filter(state=options["state"]) if options["state"] else rows)

    def do_suspend(self, options: dict[str, Any]) -> list[Membership]:
        actor = acting(options["admin"])
        return [
            membership.suspend(membership=row, actor=actor, reason=options["reason"][:160])
            for row in self._find(options["email"])
        ]

    def do_reinstate(self, options: dict[str, Any]) -> list[Membership]:
        actor = acting(options["admin"])
        return [
            membership.reinstate(membership=row, actor=actor)
            for row in self._find(options["email"])
        ]

    def do_limits(self, options: dict[str, Any]) -> list[Membership]:
        given = {"rpm": options["rpm"], "parallel": options["parallel"]}
        form = LimitsForm({**given, "reason": options["reason"]})
        if not form.is_valid():
            problems = [
                f"{name}: {' '.join(map(str, texts))}" for name, texts in form.errors.items()
            ]
            raise CommandError(f"{'; '.join(problems)} Nobody was changed.")
        actor = acting(options["admin"])
        return [
            membership.set_limits(membership=row, actor=actor, **form.cleaned_data)
            for row in self._find(options["email"])
        ]

    def do_erase(self, options: dict[str, Any]) -> list[Membership]:
        """For someone who can't sign in to do it herself; members or not."""
        wanted = {email.lower() for email in options["email"]}
        people = list(User.objects.filter(email__in=wanted, is_staff=False))
        missing = sorted(wanted - {user.email for user in people})
        if missing:
            raise CommandError(f"Nobody here (or staff): {', '.join(missing)}. Nobody was erased.")
        left = [membership.leave(user=user) for user in people]
        return [row for row in left if row]

    def _find(self, emails: list[str]) -> list[Membership]:
        wanted = {email.lower() for email in emails}
        rows = Membership.objects.filter(user__email__in=wanted).select_related("user")
        missing = sorted(wanted - {row.user.email for row in rows if row.user})
        if missing:
            raise CommandError(f"Not a member: {', '.join(missing)}. Nobody was changed.")
        return list(rows)


def _line(row: Membership) -> dict[str, Any]:
    return {
        "email": row.user.email if row.user else None,
        "state": row.state,
        "since": row.since.isoformat(),
        "pending": membership.is_pending(row),
    }
