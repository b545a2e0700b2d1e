"""What Prometheus may know of people and mail: counts and ages, nobody in a label."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Max, Min, Q
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from members.models import Application, Decision, Mail, Membership


def collect() -> Iterator[Metric]:
    now = timezone.now()
    yield from _waitlist(now)
    yield from _mails(now)
    yield GaugeMetricFamily(
        "nan_members", "Active members.", value=Membership.objects.active().count()
    )


def _waitlist(now: datetime) -> Iterator[Metric]:
    """Untouched since the last decision, or since the one who waits longest came, if later."""
    waiting = Application.objects.waiting().aggregate(n=Count("pk"), first=Min("applied_at"))
    untouched = 0.0
    if waiting["n"]:
        decided = Decision.objects.aggregate(last=Max("at"))["last"]
        since = max(waiting["first"], decided) if decided else waiting["first"]
        untouched = (now - since).total_seconds()
    yield GaugeMetricFamily("nan_waitlist_people", "People who wait.", value=waiting["n"])
    yield GaugeMetricFamily(
        "nan_waitlist_untouched_seconds",
        "For how long people have waited without any decision; 0 while nobody waits.",
        value=untouched,
    )


def _mails(now: datetime) -> Iterator[Metric]:
    """Without receipts of ballots: how many ask for theirs tells of how many have voted."""
    due = Q(state=Mail.State.DUE)
    unfinished = Mail.objects.filter(state__in=["due", "sending", "failed", "unsure"])
    unfinished = unfinished.exclude(kind=Mail.Kind.VOTE_RECEIPT)
    found = unfinished.aggregate(
        due=Count("pk", filter=due & Q(due_at__lte=now)),
        late=Count("pk", filter=due & Q(attempts__gt=0)),
        failed=Count("pk", filter=Q(state=Mail.State.FAILED)),
        unsure=Count("pk", filter=Q(state=Mail.State.UNSURE)),
        oldest=Min("created_at", filter=due & (Q(due_at__lte=now) | Q(attempts__gt=0))),
    )
    family = GaugeMetricFamily("nan_mails", "Mails that have not gone out.", labels=["state"])
    for state in ("due", "late", "failed", "unsure"):
        family.add_metric([state], found[state])
    yield family
    yield GaugeMetricFamily(
        "nan_mail_oldest_seconds",
        "Age of the oldest mail that should have gone out; 0 without one.",
        value=(now - found["oldest"]).total_seconds() if found["oldest"] else 0,
    )
