"""`manage.py probes run|show`: the calls that examples depend on, made now; what they gave."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from inference.fleet.words import words
from inference.management import operating
from inference.models import ProbeResult, ProbeRun, ProbeRunState, Slot
from inference.probes import runs


class Command(BaseCommand):
    help = "Calls made like a member's, through the API: do they work with what runs now?"

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        run = verbs.add_parser("run", help="asks for a run; the default worker makes it")
        run.add_argument("--slot", help="one slot only")
        run.add_argument("--wait", type=int, default=0, help="seconds, to see the outcome")
        show = verbs.add_parser("show", help="the latest outcome of each call")
        show.add_argument("--slot", help="one slot only")
        operating.can_print_json(run, show)

    def handle(self, *args: Any, **options: Any) -> None:
        operating.run(self, options)

    def do_show(self, options: dict[str, Any]) -> list[operating.Row]:
        found = ProbeResult.objects.filter(slot__in=_slots(options))
        rows = found.select_related("slot", "model").order_by("slot__number", "model", "pk")
        return [_row(result) for result in rows]

    def do_run(self, options: dict[str, Any]) -> list[operating.Row]:
        asked = runs.ask(slots=_slots(options), cause=ProbeRun.Cause.ASKED)
        if not asked:
            raise CommandError("No slot's model answers, so there is nothing to call.")
        if options["wait"]:
            self._wait(asked, options["wait"])
        return [
            {
                "run": run.pk,
                "slot": run.slot.name,
                "model": run.model.name,
                "state": run.state,
                "failed": ",".join(run.results.filter(ok=False).values_list("call", flat=True)),
                "error": operating.sentence(run.error_code),
            }
            for run in asked
        ]

    def _wait(self, asked: list[ProbeRun], seconds: int) -> None:
        deadline, told = time.monotonic() + seconds, -1
        while any(run.state in ProbeRun.OPEN for run in asked):
            left = sum(len(run.left) for run in asked)
            if left != told:
                self.stderr.write(f"{left} calls left")
                told = left
            if time.monotonic() > deadline:
                raise CommandError(f"Not done after {seconds} s. Does a default worker run?")
            time.sleep(0.5)
            for run in asked:
                run.refresh_from_db()
        broken = [run for run in asked if run.state == ProbeRunState.FAILED]
        if broken:
            raise CommandError(str(words(broken[0].error_code)))


def _slots(options: dict[str, Any]) -> list[Slot]:
    if options["slot"]:
        return [operating.slot(options["slot"])]
    return list(Slot.objects.select_related("model").order_by("number"))


def _row(result: ProbeResult) -> operating.Row:
    return {
        "slot": result.slot.name,
        "model": result.model.name,
        "call": result.call,
        "ok": result.ok,
        "code": result.code,
        "detail": result.detail,
        "seconds": round(result.seconds, 2),
        "checked_at": result.checked_at,
    }
