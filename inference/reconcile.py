"""Compares our rows with the gateway's keys and repairs the difference.

The gateway's side is read first and ours second. The id of a key is in our row before the gateway
hears of it, so a key that is being made at this moment is always known here by then.
"""

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from inference import wake
from inference.gateway import Gateway, GatewayKey, GatewayRefused, GatewayUnavailable
from inference.models import Key, KeyHolder, KeyState, Reconciliation
from inference.provisioning import gateway, remove

log = structlog.get_logger(__name__)

# Unknown keys beyond this many, and beyond a fifth of all, look like a restored backup or a wrong
# database rather than like orphans: they are reported and left alone.
SUSPICIOUS = 10
KEPT = timedelta(days=7)


def reconcile(*, client: Gateway | None = None, force: bool = False) -> Reconciliation | None:
    """One comparison; None if the gateway can't be read now (the next one will)."""
    client = client or gateway()
    began = timezone.now()
    try:
        theirs = {key.token: key for key in client.all_keys()}
        result = _compare(theirs, began, client, force=force)
        _note_use(client, began)
    except (GatewayUnavailable, GatewayRefused) as error:
        log.warning("reconcile_postponed", code=error.code)
        return None
    result.save()
    Reconciliation.objects.filter(at__lt=began - KEPT).delete()
    log.info("reconciled", drift=result.drift, ours=result.ours, theirs=result.theirs)
    return result


def _compare(
    theirs: dict[str, GatewayKey], began: datetime, client: Gateway, *, force: bool
) -> Reconciliation:
    ours = {key.token: key for key in Key.objects.live().exclude(token="")}
    unknown = [key for token, key in theirs.items() if token not in ours and _is_ours(key)]
    spared = len(unknown) > max(SUSPICIOUS, len(theirs) // 5) and not force
    if spared:
        log.error("reconcile_too_many_unknown_keys", unknown=len(unknown), theirs=len(theirs))
    else:
        for key in unknown:
            remove(key.token, client)
    settled = [key for key in ours.values() if key.pk in _settled(began)]
    missing = [key for key in settled if key.token not in theirs]
    differing = [key for key in settled if key.token in theirs and _differs(key, theirs[key.token])]
    _look_again([key.holder_id for key in missing + differing], missing + differing)
    return Reconciliation(
        at=began,
        ours=len(ours),
        theirs=len(theirs),
        orphans=0 if spared else len(unknown),
        spared=len(unknown) if spared else 0,
        missing=len(missing),
        differing=len(differing),
    )


def _is_ours(key: GatewayKey) -> bool:
    """Made by this installation: marked so, or a leftover of one of our rows."""
    return key.site == settings.SITE_URL


def _settled(began: datetime) -> set[UUID]:
    """Keys on which nothing was going on since the gateway's side was read."""
    return set(
        Key.objects.filter(
            Q(holder__due_at=None) | Q(holder__due_at__gt=began + timedelta(minutes=5)),
            state__in=[KeyState.ACTIVE, KeyState.BLOCKED],
            holder__lease_until=None,
            changed_at__lt=began,
        ).values_list("pk", flat=True)
    )


def _differs(key: Key, theirs: GatewayKey) -> bool:
    return theirs.blocked != (key.state == KeyState.BLOCKED) or theirs.limits != key.limits


def _look_again(holders: list[UUID], keys: list[Key]) -> None:
    """The worker then takes over what is really there and puts it right, under its lease."""
    now = timezone.now()
    Key.objects.filter(pk__in=[key.pk for key in keys]).update(doubtful_until=now)
    KeyHolder.objects.filter(pk__in=holders).update(due_at=now)
    wake.gateway_worker()


def _note_use(client: Gateway, now: datetime) -> None:
    """The day of each key's last call. Late calls of yesterday count until an hour past."""
    today = now.date()
    for day in {today, (now - timedelta(hours=1)).date()}:
        used = client.tokens_used_on(day)
        earlier = Q(last_used_on=None) | Q(last_used_on__lt=day)
        Key.objects.filter(earlier, token__in=used).update(last_used_on=day)
