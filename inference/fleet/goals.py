"""Setting what is wanted of a replica; the fleet pass does the rest."""

from typing import Any

from django.db.models import F
from django.utils import timezone

from inference.models import AtDeadline, CatalogModel, Goal, Replica, Swap


def set_goal(
    replica: Replica,
    model: CatalogModel | None,
    *,
    swap: Swap | None = None,
    drain_seconds: int = 900,
    at_deadline: str = AtDeadline.CUT,
) -> None:
    """None: nothing is to run there. An earlier failure no longer counts, a retry is due now."""
    values: dict[str, Any] = {
        "goal": Goal.SERVE if model else Goal.OFF,
        "goal_model": model,
        "goal_number": F("goal_number") + 1,
        "version": F("version") + 1,
        "swap": swap,
        "out_with_server": False,
        "drain_seconds": drain_seconds,
        "at_deadline": at_deadline,
        "error_code": "",
        "error_detail": "",
        "attempts": 0,
        "retry_at": timezone.now(),
    }
    Replica.objects.filter(pk=replica.pk).update(**values)
    replica.refresh_from_db()
