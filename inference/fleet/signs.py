"""What HAProxy is told besides places: which slot a name reaches, which names have ended, and which
slots are in a rotation, for the words of its answers."""

from datetime import UTC

from inference.models import Slot
from inference.names.life import retired_names
from inference.pool import Pool


def put_up(pool: Pool) -> None:
    """Raises PoolUnavailable. Cheap when nothing has changed."""
    slots = list(Slot.objects.all())
    pool.set_names({slot.name: slot.backend for slot in slots})
    pool.set_retired(retired_names())
    pool.set_rotation(
        {
            slot.backend: f"since {slot.rotating_since.astimezone(UTC):%H:%M} UTC"
            for slot in slots
            if slot.rotating_since
        }
    )
