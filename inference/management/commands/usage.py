"""`manage.py usage pull|show`: what members used, taken over now, or in figures of all of them."""

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from datetime import date
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.management import operating
from inference.management.operating import Row
from inference.usage import figures
from inference.usage.figures import Span
from inference.usage.page import SPANS, USUAL
from inference.usage.pull import Pulled, pull, pull_again


class Command(BaseCommand):
    help = (
        "Usage by day (UTC). `pull` needs LITELLM_MASTER_KEY: run it where the gateway worker is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        taken = verbs.add_parser("pull", help="takes over from the gateway what is due")
        taken.add_argument(
            "--day", type=_day, action="append", help="this day, also if it is closed"
        )
        shown = verbs.add_parser("show", help="figures of all members together")
        shown.add_argument("--days", type=int, choices=SPANS, default=USUAL)
        shown.add_argument("--by", choices=("day", "model", "member"), default="day")
        verbs_of_both: list[ArgumentParser] = [taken, shown]
        operating.can_print_json(*verbs_of_both)

    def handle(self, *args: Any, **options: Any) -> None:
        operating.run(self, options)

    def do_pull(self, options: dict[str, Any]) -> list[Row]:
        if not settings.LITELLM_MASTER_KEY:
            raise CommandError(
                "LITELLM_MASTER_KEY is not set here. Run this where the gateway worker runs; in "
                'the local stack after eval "$(python -m nan.local env --gateway)".'
            )
        done = pull_again(options["day"]) if options["day"] else pull()
        if done is None:
            raise CommandError("The worker is at it now. Nothing was changed; try again.")
        _say_trouble(done)
        return [asdict(done)]

    def do_show(self, options: dict[str, Any]) -> list[Row]:
        """Members by their opaque ids."""
        by = {"day": "day", "model": "model", "member": "holder_id"}[options["by"]]
        rows = figures.summed(Span.of(options["days"]).rows(), by)
        return [{options["by"]: row[by], **asdict(figures.read(row))} for row in rows]


def _say_trouble(done: Pulled) -> None:
    if done.code and done.code != "no_counters":
        raise CommandError(
            f"The gateway can't be read now ({done.code}). {done.days} days were taken over; the "
            "rest stays due."
        )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError("a day such as 2026-01-31") from None
