"""What HAProxy is told besides places: which slot a name reaches, which names have ended; for its
answers which slots are in a rotation, and where waiting for an engine is in vain."""

from collections.abc import Sequence
from datetime import UTC

from inference.models import Replica, ReplicaState, Slot
from inference.names.life import retired_names
from inference.pool import Idle, Pool


def put_up(pool: Pool, replicas: Sequence[Replica]) -> None:
    """Raises PoolUnavailable. Cheap when nothing has changed. `replicas`: all of them."""
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
    pool.set_idle(idle(slots, replicas))


def idle(slots: Sequence[Slot], replicas: Sequence[Replica]) -> dict[str, Idle]:
    """Backends to which no engine is coming, and why: people have to do something first."""
    wanted = {one.slot_id for one in replicas if one.wanted}
    coming = {one.slot_id for one in replicas if one.wanted and not _has_given_up(one)}
    return {
        slot.backend: "failed" if slot.pk in wanted else "out"
        for slot in slots
        if slot.pk not in coming and not slot.rotating_since
    }


def _has_given_up(replica: Replica) -> bool:
    """No further try is due; in a swap that runs, the swap decides."""
    moving = replica.swap is not None and replica.swap.is_active
    return replica.state == ReplicaState.FAILED and replica.retry_at is None and not moving
