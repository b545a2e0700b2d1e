"""From samples of one replica, oldest first, to a verdict. No clock, no network, no state."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from inference.watch.first_tokens import PARTS, WINDOW, parts_late, parts_later_than_once
from inference.watch.samples import Counts, Sample

PAUSE, HURRY = 60.0, 15.0
FAILURES = 2
"""Failed tiny completions in a row that condemn."""
SLOW_ONES = 3
ERRORS_SUSPECT, ERRORS_BAD = 0.2, 0.5
ENOUGH_ERRORS = 10
"""Finished requests below which a share is chance."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    state: Literal["ok", "suspect", "bad"]
    code: str = ""


OK = Verdict(state="ok")
Others = Sequence[Sequence[Sample]] | None


def judge(samples: Sequence[Sample], others: Others = None) -> Verdict:
    """The worst finding; `bad` means: take it out of the pool, if that leaves enough.

    `samples` begin with the first five minutes in service and end with the last; those between them
    may be left out, except of the last five minutes. `others`: samples of the slot's replicas that
    time to first token may be compared with; None where no other one serves.
    """
    if not samples:
        return OK
    recent = [sample for sample in samples if sample.at > samples[-1].at - WINDOW]
    findings = [
        _answers(samples),
        _errors(recent),
        _slowness(samples),
        _first_tokens(samples, others),
    ]
    for state in ("bad", "suspect"):
        for finding in findings:
            if finding.state == state:
                return finding
    return OK


def pause_before_next(verdict: Verdict) -> float:
    """Seconds from the end of one sample to the beginning of the next."""
    return PAUSE if verdict.state == "ok" else HURRY


def condemned(code: str) -> bool:
    """Whether an error's code is a verdict's: it was taken out, it did not end by itself."""
    return code.startswith("watch_")


_CODES = {"timeout": "watch_hang", "unreachable": "watch_unreachable"}


def _answers(samples: Sequence[Sample]) -> Verdict:
    failed = _last(samples, "failed")
    if not failed:
        return OK
    if samples[-1].code == "timeout" and _works(samples[-len(failed) - 1 :]):
        return Verdict(state="suspect", code="watch_busy")
    code = _CODES.get(samples[-1].code, "watch_failing")
    return Verdict(state="bad" if len(failed) >= FAILURES else "suspect", code=code)


def _last(samples: Sequence[Sample], answered: str) -> list[Sample]:
    found: list[Sample] = []
    for sample in reversed(samples):
        if sample.answered != answered:
            break
        found.append(sample)
    return found


def _works(samples: Sequence[Sample]) -> bool:
    """Tokens came out between each two samples. A hung engine's count stands still."""
    counts = [sample.counts for sample in samples]
    steps = pairwise(counts)
    return len(counts) > 1 and all(
        before is not None and after is not None and after.generated > before.generated
        for before, after in steps
    )


def _errors(recent: Sequence[Sample]) -> Verdict:
    counts = _counted(recent)
    finished = sum(after.finished - before.finished for before, after in counts)
    errors = sum(after.errors - before.errors for before, after in counts)
    if finished < ENOUGH_ERRORS or errors / finished < ERRORS_SUSPECT:
        return OK
    bad = errors / finished >= ERRORS_BAD and finished >= 2 * ENOUGH_ERRORS
    return Verdict(state="bad" if bad else "suspect", code="watch_errors")


def _counted(samples: Sequence[Sample]) -> list[tuple[Counts, Counts]]:
    """Neighbours that can be subtracted; not across a restart, where totals begin anew."""
    counts = [sample.counts for sample in samples if sample.counts is not None]
    return [
        (a, b) for a, b in pairwise(counts) if b.finished >= a.finished and b.errors >= a.errors
    ]


def _slowness(samples: Sequence[Sample]) -> Verdict:
    slow = _last(samples, "slow")
    idle = all(sample.counts is not None and sample.counts.waiting == 0 for sample in slow)
    if len(slow) >= SLOW_ONES and idle:
        return Verdict(state="bad", code="watch_slow")
    if slow:
        return Verdict(state="suspect", code="watch_slow" if idle else "watch_busy")
    return OK


def _first_tokens(samples: Sequence[Sample], others: Others) -> Verdict:
    """What the slot's other replicas meet as well is load. One that serves alone can only be held
    against its own past; where others serve that can't be compared, that much is no proof."""
    late = parts_late(samples, others or ())
    if late is not None:
        return _by_parts(late, "watch_behind", proof=True)
    queued = any(one.counts and one.counts.waiting for one in samples[-PARTS:])
    code = "watch_busy" if queued else "watch_slow"
    return _by_parts(parts_later_than_once(samples), code, proof=others is None and not queued)


def _by_parts(late: int, code: str, *, proof: bool) -> Verdict:
    if not late:
        return OK
    return Verdict(state="bad" if proof and late >= PARTS else "suspect", code=code)
