"""What the page of an ended swap says: how it left things and, apart from that, how they are now.

The rows of replicas go on after it, so what was at its end is read from its own rows alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from inference.models import Replica, ReplicaState, Swap, SwapReplica, SwapState
from inference.swaps import plan as swaps

State = SwapReplica.State
AGAIN = (SwapState.FAILED, SwapState.ABORTED, SwapState.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class SwapEnd:
    left: Mapping[str, int]
    """How many of its replicas it left with which model, down, or untouched."""
    not_put_back: Sequence[Replica]
    """Left down, or on the new model, although everything was to go back."""
    amiss: Sequence[Replica]
    """Those of them that do not serve the slot's model now either."""
    serving: Mapping[str, int]
    """How many of the slot's replicas serve which model now."""
    later: Swap | None
    """The slot's last swap after this one."""
    refusal: str
    """The code with which planning it again would be refused now; empty for one that is done."""
    can_retry: bool

    @classmethod
    def of(cls, swap: Swap, parts: Sequence[SwapReplica]) -> "SwapEnd":
        back = [part.replica for part in parts if part.state in (State.DOWN, State.KEPT)]
        again = swap.state in AGAIN
        refusal = swaps.refusal(slot=swap.slot, model=swap.to_model) if again else ""
        return cls(
            left=_left(swap, parts) if swap.started_at else {},
            not_put_back=back,
            amiss=[replica for replica in back if not _serves(replica, swap.slot.model_id)],
            serving=_serving(swap),
            later=swap.slot.swaps.filter(pk__gt=swap.pk).first(),
            refusal=refusal,
            can_retry=again and not refusal,
        )


def _left(swap: Swap, parts: Sequence[SwapReplica]) -> dict[str, int]:
    words = {
        State.DONE: swap.to_model.title,
        State.KEPT: swap.to_model.title,
        State.RESTORED: swap.from_model.title,
        State.WAITING: _("not touched"),
    }
    return dict(Counter(words.get(State(one.state)) or one.get_state_display() for one in parts))


def _serves(replica: Replica, model_id: int | None) -> bool:
    return replica.state == ReplicaState.SERVING and replica.model_id == model_id


def _serving(swap: Swap) -> dict[str, int]:
    rows = swap.slot.replicas.serving().exclude(model=None).select_related("model")
    return dict(Counter(replica.model.title for replica in rows if replica.model))
