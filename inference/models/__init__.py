"""Rows of what runs: keys (keys.py), what can run (catalog.py), what does (fleet.py), and the
moves from one model to another (swaps.py)."""

from inference.models.catalog import CatalogModel, Kind, Slot
from inference.models.fleet import (
    REPLICA_TRANSITIONS,
    Alert,
    AtDeadline,
    FleetLease,
    Goal,
    Replica,
    ReplicaState,
    Server,
)
from inference.models.keys import (
    TRANSITIONS,
    Key,
    KeyEvent,
    KeyHolder,
    KeyHolderQuerySet,
    KeyQuerySet,
    KeyState,
    Reconciliation,
)
from inference.models.names import PublicName
from inference.models.swaps import FleetEvent, Swap, SwapClaim, SwapReplica, SwapState

__all__ = [
    "REPLICA_TRANSITIONS",
    "TRANSITIONS",
    "Alert",
    "AtDeadline",
    "CatalogModel",
    "FleetEvent",
    "FleetLease",
    "Goal",
    "Key",
    "KeyEvent",
    "KeyHolder",
    "KeyHolderQuerySet",
    "KeyQuerySet",
    "KeyState",
    "Kind",
    "PublicName",
    "Reconciliation",
    "Replica",
    "ReplicaState",
    "Server",
    "Slot",
    "Swap",
    "SwapClaim",
    "SwapReplica",
    "SwapState",
]
