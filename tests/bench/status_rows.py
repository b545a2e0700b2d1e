"""Runs with Django inside a stack's settings: a fleet with thirty days of samples. Verb: fill."""

from datetime import timedelta

from django.utils import timezone

from inference.models import Incident, IncidentUpdate, Replica, ReplicaSample, Slot, SlotSample
from members.models import User
from tests.inference.staff import rows

DAYS = 30
HOUR = 3600
BUCKETS = {"0.5": 40, "1.0": 8, "2.5": 2}


def fill() -> int:
    """How many samples there are: of three slots with two engines each."""
    admin = User.objects.create_user("admin@bench.invalid", None, is_staff=True)
    slot, _replicas, new = rows.small_fleet(2)
    for name in ("second", "third"):
        other = rows.slot(name, rows.catalogue_model(name))
        for _number in range(2):
            rows.replica(other, slot.replicas.first().server)
    for one in Slot.objects.all():
        _stood(one)
        _incidents(one)
    for replica in Replica.objects.all():
        _measured(replica)
    rows.swap(slot, new, admin, state="approved")
    return SlotSample.objects.count() + ReplicaSample.objects.count()


def _stood(slot: Slot) -> None:
    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    SlotSample.objects.bulk_create(
        SlotSample(slot=slot, span="hour", at=hour - timedelta(hours=n), seconds=HOUR, up=2,
                   wanted=2, down_seconds=600 if n % 100 == 0 else 0)
        for n in range(1, DAYS * 24)
    )  # fmt: skip
    SlotSample.objects.bulk_create(
        SlotSample(slot=slot, at=now - timedelta(seconds=30 * n), seconds=30, up=2, wanted=2)
        for n in range(int((now - hour).total_seconds()) // 30)
    )


def _measured(replica: Replica) -> None:
    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)

    def sample(**fields: object) -> ReplicaSample:
        return ReplicaSample(
            slot=replica.slot, replica=replica, running=3, kv_usage=0.3, generated=4200,
            first_tokens=50, first_token_seconds=21, first_token_buckets=BUCKETS, **fields,
        )  # fmt: skip

    ReplicaSample.objects.bulk_create(
        sample(span="hour", at=hour - timedelta(hours=n), seconds=HOUR) for n in range(1, 48)
    )
    ReplicaSample.objects.bulk_create(
        sample(at=now - timedelta(seconds=30 * n), seconds=30)
        for n in range(int((now - hour).total_seconds()) // 30)
    )


def _incidents(slot: Slot) -> None:
    for day in (3, 9, 21):
        began = timezone.now() - timedelta(days=day)
        incident = Incident.objects.create(
            slot=slot, began_at=began, ended_at=began + timedelta(minutes=10)
        )
        for text in ("It is the network.", "It is over."):
            IncidentUpdate.objects.create(incident=incident, text_es=text, text_en=text)


VERBS = {"fill": fill}
