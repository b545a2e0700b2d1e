"""Signs of life: work that the beat asks for leaves the time at which it was last done.

The beat, the broker and the queue's worker must all live for it to move on.
"""

from django.utils import timezone

from inference.models import Heartbeat


def beat(queue: str) -> None:
    Heartbeat.objects.update_or_create(name=queue, defaults={"at": timezone.now()})
