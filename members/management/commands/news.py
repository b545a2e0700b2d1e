"""manage.py news list|write|withdraw: what the staff page does, for scripts."""

import argparse
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from members import news
from members.management.commands.waitlist import acting
from members.models import News


class Command(BaseCommand):
    help = "What admins tell all members on their home page, in Spanish and English."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="machine-readable")
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="the newest first")
        writing = verbs.add_parser("write", help="members read it at once")
        writing.add_argument("--es", required=True, help="in Spanish")
        writing.add_argument("--en", required=True, help="in English")
        withdrawing = verbs.add_parser("withdraw", help="nobody reads it any more")
        withdrawing.add_argument("id", type=int)
        for verb in (listing, writing, withdrawing):
            verb.add_argument(
                "--json", action="store_true", default=argparse.SUPPRESS, help="machine-readable"
            )
        for verb in (writing, withdrawing):
            verb.add_argument("--as", dest="admin", help="e-mail of the admin who decides")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rows = getattr(self, f"do_{options['verb']}")(options)
        except news.Refused as refusal:
            raise CommandError(str(refusal)) from None
        lines = [_line(row) for row in rows]
        if options["json"]:
            self.stdout.write(json.dumps(lines, ensure_ascii=False))
            return
        for line in lines:
            self.stdout.write("  ".join(f"{name}={value}" for name, value in line.items()))

    def do_list(self, options: dict[str, Any]) -> list[News]:
        return list(News.objects.all()[:50])

    def do_write(self, options: dict[str, Any]) -> list[News]:
        actor = acting(options["admin"])
        return [news.write(actor=actor, text_es=options["es"], text_en=options["en"])]

    def do_withdraw(self, options: dict[str, Any]) -> list[News]:
        news.withdraw(news=options["id"], actor=acting(options["admin"]))
        return list(News.objects.filter(pk=options["id"]))


def _line(row: News) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": row.at.isoformat(timespec="seconds"),
        "withdrawn": bool(row.withdrawn_at),
        "es": row.text_es,
        "en": row.text_en,
    }
