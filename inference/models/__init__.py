"""Rows of what runs: keys (keys.py), what can run (catalog.py), what does (fleet.py),
what engines said of themselves (measured.py), the moves from one model to another (swaps.py), and
how it went (monitoring.py)."""

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
from inference.models.measured import Measurement, measured_with
from inference.models.monitoring import (
    ApiSample,
    ApiState,
    Heartbeat,
    Incident,
    IncidentUpdate,
    LastCount,
    ReplicaSample,
    SlotSample,
    Span,
)
from inference.models.names import PublicName
from inference.models.probes import ProbeResult, ProbeRun, ProbeRunState
from inference.models.swaps import FleetEvent, Swap, SwapClaim, SwapReplica, SwapState
from inference.models.usage import Usage, UsageDay, UsageLook

__all__ = [
    "REPLICA_TRANSITIONS",
    "TRANSITIONS",
    "Alert",
    "ApiSample",
    "ApiState",
    "AtDeadline",
    "CatalogModel",
    "FleetEvent",
    "FleetLease",
    "Goal",
    "Heartbeat",
    "Incident",
    "IncidentUpdate",
    "Key",
    "KeyEvent",
    "KeyHolder",
    "KeyHolderQuerySet",
    "KeyQuerySet",
    "KeyState",
    "Kind",
    "LastCount",
    "Measurement",
    "ProbeResult",
    "ProbeRun",
    "ProbeRunState",
    "PublicName",
    "Reconciliation",
    "Replica",
    "ReplicaSample",
    "ReplicaState",
    "Server",
    "Slot",
    "SlotSample",
    "Span",
    "Swap",
    "SwapClaim",
    "SwapReplica",
    "SwapState",
    "Usage",
    "UsageDay",
    "UsageLook",
    "measured_with",
]
