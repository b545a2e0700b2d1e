"""How long the whole suite of probes takes, on the real edge and gateway with simulated engines.

The first run warms everything up; the second is measured.
"""

import json
from typing import Any

from tests.bench.report import Line
from tests.bench.setting import Setting

SECONDS = 60
PATIENCE = "240"
LOOK = """
import json
from inference.models import ProbeRun
print(json.dumps([[run.slot.name, run.results.count(), run.results.filter(ok=False).count(),
                   (run.finished_at - run.asked_at).total_seconds()]
                  for run in ProbeRun.objects.filter(state="done").order_by("-pk")[:{count}]]))
"""


def measure(setting: Setting) -> tuple[list[Line], dict[str, Any]]:
    stack = setting.stack
    for _number in range(2):
        said = stack.manage("probes", "run", "--wait", PATIENCE, "--json")
    asked = json.loads(said.splitlines()[-1])
    runs = json.loads(stack.python(LOOK.format(count=len(asked))).splitlines()[-1])
    if failed := [slot for slot, _calls, failures, _seconds in runs if failures]:
        raise SystemExit(f"Probes failed, so their time says nothing: {', '.join(failed)}")
    seconds = max(one for _slot, _calls, _failures, one in runs)
    calls = sum(count for _slot, count, _failures, _seconds in runs)
    line = Line(
        f"The suite of probes: {calls} calls for {len(runs)} slots, from asking to the last answer",
        f"{seconds:.1f} s",
        value=round(seconds, 1),
        bound=SECONDS,
        unit="s",
    )
    return [line], {"probes": {slot: one for slot, _calls, _failures, one in runs}}
