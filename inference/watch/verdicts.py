"""From samples of one replica, oldest first, to a verdict. No clock, no network, no state."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from inference.engine_metrics import Histogram
from inference.watch.samples import Counts, Sample

PAUSE, HURRY = 60.0, 15.0
WINDOW = 300.0
"""Seconds of the recent past that error rate and time to first token are taken from."""
FAILURES = 2
"""Failed tiny completions in a row that condemn."""
SLOW_ONES = 3
ERRORS_SUSPECT, ERRORS_BAD = 0.2, 0.5
ENOUGH_ERRORS, ENOUGH_TOKENS = 10, 20
"""Finished requests below which a share, or a mean, is chance."""
SLOWER, SLOWER_SECONDS = 4.0, 2.0
"""Times its own beginning, and seconds at least, of the mean time to first token."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    state: Literal["ok", "suspect", "bad"]
    code: str = ""


OK = Verdict(state="ok")


def judge(samples: Sequence[Sample]) -> Verdict:
    """The worst finding; `bad` means: take it out of the pool, if that leaves enough.

    `samples` begin with the first five minutes in service, which are the measure for slowness, and
    end with the last; those between them may be left out, except of the last five minutes.
    """
    if not samples:
        return OK
    recent = [sample for sample in samples if sample.at > samples[-1].at - WINDOW]
    findings = [_answers(samples), _errors(recent), _slowness(samples, recent)]
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


def _slowness(samples: Sequence[Sample], recent: Sequence[Sample]) -> Verdict:
    slow = _last(samples, "slow")
    idle = all(sample.counts is not None and sample.counts.waiting == 0 for sample in slow)
    if len(slow) >= SLOW_ONES and idle:
        return Verdict(state="bad", code="watch_slow")
    if slow or _slower(samples, recent):
        return Verdict(state="suspect", code="watch_slow" if idle else "watch_busy")
    return OK


def _slower(samples: Sequence[Sample], recent: Sequence[Sample]) -> bool:
    """The mean time to first token now, against that of the first minutes in service."""
    first = [sample for sample in samples if sample.at <= samples[0].at + WINDOW]
    if first[-1].at >= recent[0].at:  # too young to have a past
        return False
    now, then = _ttft(recent), _ttft(first)
    if now.count < ENOUGH_TOKENS or then.count < ENOUGH_TOKENS:
        return False
    return now.sum / now.count > max(SLOWER_SECONDS, SLOWER * then.sum / then.count)


def _ttft(samples: Sequence[Sample]) -> Histogram:
    steps = [after.ttft.since(before.ttft) for before, after in _counted(samples)]
    return Histogram(sum=sum(s.sum for s in steps), count=sum(s.count for s in steps))
