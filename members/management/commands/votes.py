"""manage.py votes list|show|open|close|ratify: what the staff page does, for scripts.

While a vote is open, no verb says how many have voted.
"""

import argparse
import json
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from inference.models import CatalogModel
from members.management.commands.waitlist import acting
from members.models import Vote
from members.tally import count, decide, mark
from members.tally.table import lines
from members.voting import closing, ratify, results, rounds
from members.voting.refusals import Refused
from nan.moments import is_one_moment


class Command(BaseCommand):
    help = "Votes: what is prepared, open and over; opening, closing and ratifying."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="machine-readable")
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="all rounds, the latest first")
        show = verbs.add_parser("show", help="one round: options, rules, and after the close all")
        opening = verbs.add_parser("open", help="freezes options and roll; ballots are taken")
        opening.add_argument("--until", required=True, help="2026-12-20T23:59, Madrid's time")
        close = verbs.add_parser("close", help="counts now, if the deadline is over")
        ratifying = verbs.add_parser("ratify", help="plans the swap, which must then be approved")
        ratifying.add_argument("--start", required=True, help="2027-01-10T06:00, Madrid's time")
        ratifying.add_argument("--es", required=True, help="announcement in Spanish")
        ratifying.add_argument("--en", required=True, help="announcement in English")
        ratifying.add_argument("--model", help="its name in the catalogue, if there are several")
        ratifying.add_argument("--despite-tie", action="store_true")
        for verb in (show, opening, close, ratifying):
            verb.add_argument("vote", help="its name: 2026-Q4")
        for verb in (listing, show, opening, close, ratifying):
            verb.add_argument(
                "--json", action="store_true", default=argparse.SUPPRESS, help="machine-readable"
            )
        for verb in (opening, ratifying):
            verb.add_argument("--as", dest="admin", help="e-mail of the admin who decides")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"do_{options['verb']}")(options)
        except Refused as refusal:
            raise CommandError(f"{refusal} ({refusal.code}) Nothing was changed.") from None
        except ValidationError as problem:
            raise CommandError("; ".join(problem.messages)) from None

    def do_list(self, options: dict[str, Any]) -> None:
        votes = Vote.objects.select_related("slot").order_by("-pk")
        if options["json"]:
            self._json([_line(vote) for vote in votes])
            return
        for vote in votes:
            until = timezone.localtime(vote.closes_at) if vote.closes_at else None
            day = f"{until:%Y-%m-%d %H:%M}" if until else "–"
            self.stdout.write(f"{vote.slug:<20} {vote.state:<10} {vote.slot.name:<12} {day}")

    def do_show(self, options: dict[str, Any]) -> None:
        vote = _find(options["vote"])
        if options["json"]:
            self._json(_whole(vote))
            return
        for key, value in _line(vote).items():
            self.stdout.write(f"{key:<16} {value}")
        for number, candidate in enumerate(vote.candidates.all()):
            option = f"{mark(number)}. {candidate.code}  {candidate.title}"
            self.stdout.write(f"{'option':<16} {option}")
        if vote.is_over:
            self._table(vote)

    def _table(self, vote: Vote) -> None:
        """Counted anew from the published ballots."""
        ballots = vote.ballots.values_list("ranking", flat=True)
        counted = count(vote.codes, ballots)
        seed, roll = vote.ballots_digest, vote.roll_size
        outcome = decide(counted, seed=seed, roll=roll, percent=vote.quorum_percent)
        self.stdout.write("")
        self.stdout.writelines(f"{line}\n" for line in lines(counted, outcome, seed))

    def do_open(self, options: dict[str, Any]) -> None:
        vote = rounds.open_vote(
            vote=_find(options["vote"]),
            actor=acting(options["admin"]),
            closes_at=_moment(options["until"]),
        )
        self._done(vote, options)

    def do_close(self, options: dict[str, Any]) -> None:
        vote = _find(options["vote"])
        closing.close(vote=vote)
        vote.refresh_from_db()
        self._done(vote, options)

    def do_ratify(self, options: dict[str, Any]) -> None:
        vote = ratify.ratify(
            vote=_find(options["vote"]),
            actor=acting(options["admin"]),
            start_at=_moment(options["start"]),
            announcement_es=options["es"],
            announcement_en=options["en"],
            model=_model(options["model"]),
            despite_tie=options["despite_tie"],
        )
        self._done(vote, options)

    def _done(self, vote: Vote, options: dict[str, Any]) -> None:
        if options["json"]:
            self._json(_whole(vote))
            return
        self.stdout.write(f"{vote.slug}: {vote.state}")
        if vote.is_over:
            self.stdout.write(results.verdict(vote))
        if vote.swap_id:
            who = "its second admin" if settings.SWAP_SECOND_ADMIN else "an admin"
            self.stdout.write(f"swap {vote.swap_id} waits for {who}")

    def _json(self, found: Any) -> None:
        self.stdout.write(json.dumps(found, cls=DjangoJSONEncoder))


def _line(vote: Vote) -> dict[str, Any]:
    return {
        "vote": vote.slug,
        "slot": vote.slot.name,
        "kind": vote.kind,
        "state": vote.state,
        "opened": vote.opened_at,
        "closes": vote.closes_at,
        "quorum_percent": vote.quorum_percent,
        "roll": vote.roll_size,
        "roll_sha256": vote.roll_digest,
    }


def _whole(vote: Vote) -> dict[str, Any]:
    options = vote.candidates.all()
    return {
        **_line(vote),
        "options": [
            {"mark": mark(number), "code": one.code, "title": one.title, "repo": one.repo}
            for number, one in enumerate(options)
        ],
        "missing": rounds.missing(vote) if vote.state == Vote.State.PREPARING else [],
        "result": vote.result,
        "swap": vote.swap_id,
    }


def _find(slug: str) -> Vote:
    vote = Vote.objects.select_related("slot__model").filter(slug=slug).first()
    if vote is None:
        known = ", ".join(Vote.objects.values_list("slug", flat=True)[:10]) or "none"
        raise CommandError(f"There is no vote {slug}. There are: {known}.")
    return vote


def _model(name: str | None) -> CatalogModel | None:
    if not name:
        return None
    model = CatalogModel.objects.filter(name=name).first()
    if model is None:
        raise CommandError(f"The catalogue has no {name}. `manage.py models list` shows it.")
    return model


def _moment(text: str) -> datetime:
    """Without a zone it is Madrid's; a time that the change of clocks skips or has twice is asked
    for with its zone."""
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f"{text} is no date with time. Write 2026-12-20T23:59.")
    if found.tzinfo:
        return found
    if not is_one_moment(found):
        raise CommandError(f"{text} is not one moment in Madrid. Add its zone: {text}+01:00.")
    return timezone.make_aware(found, timezone.get_default_timezone())
