"""Signs of life: work that the beat asks for leaves the time at which it was last done.

The beat, the broker and the queue's worker must all live for it to move on.
"""

from datetime import datetime, timedelta

from django.utils import timezone

from inference.models import Heartbeat

ASKED, UNBROKEN, POOL = "asked", "unbroken", "pool"
BREAK = timedelta(seconds=15)
"""Every five seconds somebody looks. After so long without, nobody did: everything was stopped, or
the beat, the broker, the database."""


def beat(queue: str) -> None:
    Heartbeat.objects.update_or_create(name=queue, defaults={"at": timezone.now()})


def looking(now: datetime) -> datetime:
    """Notes that the fleet is looked at, and says since when that goes on without a break."""
    known = dict(Heartbeat.objects.filter(name__in=(ASKED, UNBROKEN)).values_list("name", "at"))
    since = known.get(UNBROKEN)
    if since is None or ASKED not in known or now - known[ASKED] > BREAK:
        since = now
        Heartbeat.objects.update_or_create(name=UNBROKEN, defaults={"at": since})
    Heartbeat.objects.update_or_create(name=ASKED, defaults={"at": now})
    return since


def seen(name: str, now: datetime) -> None:
    """One query, which writes once in five seconds. What was never missed needs no row."""
    Heartbeat.objects.filter(name=name, at__lt=now - timedelta(seconds=5)).update(at=now)


def missed_since(name: str, now: datetime) -> datetime:
    """Since when it was looked for and not seen; `now` for what was never missed before."""
    row, _new = Heartbeat.objects.get_or_create(name=name, defaults={"at": now})
    broken = Heartbeat.objects.filter(name=UNBROKEN).values_list("at", flat=True).first()
    return max(row.at, broken) if broken else row.at
