"""manage.py mails list|retry: what is in the outbox and did not simply go out."""

import argparse
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from members import outbox
from members.models import Mail

UNFINISHED = [Mail.State.DUE, Mail.State.SENDING, Mail.State.FAILED, Mail.State.UNSURE]


class Command(BaseCommand):
    help = "Lists mails that are not out; sends again what failed or is unsure."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="machine-readable")
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list")
        listing.add_argument("--all", action="store_true", help="sent and cancelled ones too")
        retry = verbs.add_parser("retry", help="all that failed or wait, or those given")
        retry.add_argument("id", nargs="*", type=int)
        retry.add_argument(
            "--unsure", action="store_true", help="also those that perhaps went out already"
        )
        for verb in (listing, retry):
            verb.add_argument(
                "--json", action="store_true", default=argparse.SUPPRESS, help="machine-readable"
            )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "retry":
            self._write({"again": self.retry(options)}, as_json=options["json"])
            return
        rows = Mail.objects.order_by("-pk")
        if not options["all"]:
            rows = rows.filter(state__in=UNFINISHED)
        for_json = [_line(mail) for mail in rows[:1000]]
        if options["json"]:
            self.stdout.write(json.dumps(for_json))
            return
        for line in for_json:
            self._write(line, as_json=False)

    def retry(self, options: dict[str, Any]) -> int:
        if options["id"]:
            return outbox.retry(Mail.objects.filter(pk__in=options["id"]))
        states = [Mail.State.FAILED, Mail.State.DUE]
        states += [Mail.State.UNSURE] if options["unsure"] else []
        return outbox.retry(Mail.objects.filter(state__in=states, attempts__gt=0))

    def _write(self, line: dict[str, Any], *, as_json: bool) -> None:
        text = json.dumps(line) if as_json else "  ".join(f"{k}={v}" for k, v in line.items())
        self.stdout.write(text)


def _line(mail: Mail) -> dict[str, Any]:
    return {
        "id": mail.pk,
        "to": mail.to,
        "kind": mail.kind,
        "state": mail.state,
        "attempts": mail.attempts,
        "error": mail.error,
        "due": mail.due_at.isoformat(timespec="seconds"),
    }
