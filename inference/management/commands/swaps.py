"""`manage.py swaps list|plan|approve|start|cancel|pause|resume|abort|retry|show`: what the pages
do, for scripts and for the day when the web is down."""

import time
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone, translation

from inference.fleet.words import WORDS
from inference.management import operating
from inference.management.operating import Row, acting
from inference.models import FleetEvent, Swap, SwapState
from inference.staff import events
from inference.swaps import plan as swaps
from nan.moments import is_one_moment

VERBS = {
    "approve": "another admin than the one who planned it, unless SWAP_SECOND_ADMIN=0",
    "start": "runs now; approves it first where one admin may do both",
    "cancel": "before it has begun",
    "pause": "the replica under way is finished, the next one is not begun",
    "resume": "goes on",
    "abort": "puts the old model back",
    "retry": "plans another one with the same choices",
}
LOOK_SECONDS = 1


class Command(BaseCommand):
    help = "Swaps: a slot moves from one model to another, replica by replica."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listed = verbs.add_parser("list", help="the latest first")
        listed.add_argument("--limit", type=int, default=30)
        plan = verbs.add_parser("plan", help="nothing changes before it is approved")
        _plan_arguments(plan)
        show = verbs.add_parser("show")
        show.add_argument("--follow", action="store_true", help="prints what happens until its end")
        acts = [verbs.add_parser(name, help=text) for name, text in VERBS.items()]
        for verb in (show, *acts):
            verb.add_argument("swap", type=int)
        operating.can_act_as(plan, *acts, required=True)
        operating.can_print_json(listed, plan, show, *acts)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "show" and options["follow"]:
            self._follow(_swap(options["swap"]))
        else:
            verb = options["verb"]
            known = verb in ("list", "plan", "show", "start", "retry")
            operating.run(self, options if known else {**options, "verb": "act", "act": verb})

    def do_list(self, options: dict[str, Any]) -> list[Row]:
        found = Swap.objects.select_related("slot", "from_model", "to_model")
        return [_row(swap) for swap in found.order_by("-pk")[: options["limit"]]]

    def do_plan(self, options: dict[str, Any]) -> list[Row]:
        swap = swaps.plan(
            slot=operating.slot(options["slot"]),
            model=operating.model(options["model"]),
            actor=acting(options),
            reason=options["reason"],
            watch_seconds=options["watch_seconds"],
            start_at=_time(options["start_at"]),
            **operating.drain(options),
        )
        return [_row(swap)]

    def do_act(self, options: dict[str, Any]) -> list[Row]:
        swap = _swap(options["swap"])
        getattr(swaps, options["act"])(swap=swap, actor=acting(options))
        return [_row(_swap(swap.pk))]

    def do_start(self, options: dict[str, Any]) -> list[Row]:
        swap, admin = _swap(options["swap"]), acting(options)
        if swap.state == SwapState.PLANNED and not settings.SWAP_SECOND_ADMIN:
            swaps.approve(swap=swap, actor=admin)
        swaps.start_now(swap=swap, actor=admin)
        return [_row(_swap(swap.pk))]

    def do_retry(self, options: dict[str, Any]) -> list[Row]:
        return [_row(swaps.retry(swap=_swap(options["swap"]), actor=acting(options)))]

    def do_show(self, options: dict[str, Any]) -> list[Row]:
        swap = _swap(options["swap"])
        parts = swap.parts.select_related("replica__server")
        found = swap.events.select_related("replica__server", "actor", "model")
        return [
            {
                **_row(swap),
                "replicas": {
                    str(part.replica): f"{part.state} ({part.replica.state})" for part in parts
                },
                "events": [_line(event) for event in found],
            }
        ]

    def _follow(self, swap: Swap) -> None:
        """Ends with 0 if it is done, else with 1."""
        seen = 0
        with translation.override("en"):
            while True:
                swap.refresh_from_db()
                found = FleetEvent.objects.filter(swap=swap, pk__gt=seen).order_by("pk")
                for event in found.select_related("replica__server", "actor", "model"):
                    seen = event.pk
                    self.stdout.write(_line(event))
                if not swap.is_open:
                    break
                time.sleep(LOOK_SECONDS)
            if swap.state != SwapState.DONE:
                raise CommandError(f"{swap.state}. {operating.sentence(swap.error_code)}".strip())


def _plan_arguments(plan: ArgumentParser) -> None:
    plan.add_argument("slot")
    plan.add_argument("model")
    plan.add_argument("--reason", default="")
    operating.can_drain(plan)
    plan.set_defaults(at_deadline="abort")
    plan.add_argument("--watch-seconds", type=operating.upto(3600), default=120)
    plan.add_argument("--start-at", help=f"2026-12-01T07:30, in {settings.TIME_ZONE}")


def _swap(pk: int) -> Swap:
    found = Swap.objects.select_related("slot", "from_model", "to_model").filter(pk=pk).first()
    if found is None:
        raise CommandError(f"There is no swap {pk}. `manage.py swaps list` shows them.")
    return found


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text} is no time. Write it as 2026-12-01T07:30.") from None
    if timezone.is_aware(found):
        return found
    if not is_one_moment(found):
        raise CommandError(
            f"{text} is not one moment in {settings.TIME_ZONE}: the clocks are changed then. "
            f"Add its zone: {text}+01:00."
        )
    return timezone.make_aware(found)


def _row(swap: Swap) -> Row:
    return {
        "id": swap.pk,
        "slot": swap.slot.name,
        "from": swap.from_model.name,
        "to": swap.to_model.name,
        "state": swap.state,
        "start_at": swap.start_at,
        "paused": swap.paused_at is not None,
        "waiting": swap.waiting_code,
        "step": swap.error_step,
        "error": swap.error_code,
        "why": str(WORDS.get(swap.error_code, "")),
        "detail": swap.error_detail,
    }


def _line(event: FleetEvent) -> str:
    at = timezone.localtime(event.at).strftime("%Y-%m-%d %H:%M:%S")
    about = f" {event.replica}:" if event.replica else ""
    model = f" ({event.model.name})" if event.model else ""
    remark = events.remark(event)
    return f"{at}{about} {events.happened(event)}{model}{f': {remark}' if remark else ''}"
