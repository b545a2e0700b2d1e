"""Makes the gateway's model list say what the rows say, however often and by however many it runs.

Only entries of ours are touched: their ids begin with `name:`. Two entries with one name would be
balanced, so where somebody else's has it, there is none of ours, and the row says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from django.conf import settings

from inference.alone import alone
from inference.deployment import Deployment
from inference.gateway import Gateway, GatewayRefused, GatewayUnavailable
from inference.models import CatalogModel, PublicName, Swap
from inference.names import life
from inference.provisioning import WIDE, gateway

log = structlog.get_logger(__name__)

OURS = "name:"
LOCK = 0x6E616D6573


@dataclass
class Outcome:
    """What one pass changed at the gateway, and what it could not."""

    put: int = 0
    removed: int = 0
    failed: int = 0


def publish(*, client: Gateway | None = None) -> Outcome | None:
    """One pass; None if another is under way, or the gateway can't be read now."""
    with alone(LOCK) as free:
        if not free:
            return None
        life.claim_all()
        return _pass(client or gateway())


def _pass(client: Gateway) -> Outcome | None:
    """The gateway's side is read first: a row that changes meanwhile is put right by the next."""
    try:
        listed = client.deployments()
    except (GatewayUnavailable, GatewayRefused) as error:
        _give_up(error.code)
        return None
    wanted = wanted_deployments()
    ours, taken = _sort(listed)
    outcome = Outcome()
    try:
        for row, deployment in wanted:
            if row.name in taken:
                _make_way(row, deployment, ours, outcome, client)
            else:
                _settle(row, deployment, ours.get(deployment.id), outcome, client)
        _remove_others(ours, wanted, outcome, client)
    except GatewayUnavailable as error:
        _give_up(error.code)
        outcome.failed += 1
    if outcome != Outcome():
        log.info("names_published", put=outcome.put, removed=outcome.removed, left=outcome.failed)
    return outcome


def wanted_deployments() -> list[tuple[PublicName, Deployment]]:
    """One for each live name of a slot that has a model."""
    swaps = Swap.objects.active().select_related("from_model", "to_model")
    moving = {swap.slot_id: [swap.from_model, swap.to_model] for swap in swaps}
    rows = PublicName.objects.live().exclude(slot__model=None).select_related("slot__model")
    return [(row, _deployment(row, moving.get(row.slot_id, []))) for row in rows]


def _deployment(row: PublicName, moving: Sequence[CatalogModel]) -> Deployment:
    """While a slot moves, a call may meet either model: it is promised what both can do."""
    slot = row.slot
    models = [model for model in (slot.model, *moving) if model]
    context = min(model.context_length for model in models)
    return Deployment(
        id=f"{OURS}{row.name}",
        name=row.name,
        engine_name=slot.name,
        api_base=f"{settings.POOL_URL}/{slot.name}/v1",
        mode=slot.kind,
        max_input_tokens=context,
        max_output_tokens=min(context, *(model.max_output for model in models)),
        site=settings.SITE_URL,
    )


def _sort(listed: Sequence[Deployment]) -> tuple[dict[str, Deployment], set[str]]:
    """Our entries by id, and the names that others' entries have.

    Ours bear our mark, or are known to have been put by us (under an earlier SITE_URL).
    """
    confirmed = PublicName.objects.exclude(confirmed="").values_list("name", flat=True)
    known = {f"{OURS}{name}" for name in confirmed}
    ours = {
        found.id: found
        for found in listed
        if found.id.startswith(OURS) and (found.site == settings.SITE_URL or found.id in known)
    }
    return ours, {found.name for found in listed if found.id not in ours}


def _settle(
    row: PublicName,
    wanted: Deployment,
    found: Deployment | None,
    outcome: Outcome,
    client: Gateway,
) -> None:
    if found != wanted or row.confirmed != wanted.digest:
        try:
            client.put_deployment(wanted)
        except (GatewayUnavailable, GatewayRefused) as error:
            _failed(row, error, outcome)
            return
        outcome.put += 1
    _note(row, confirmed=wanted.digest, error_code="")


def _failed(row: PublicName, error: GatewayUnavailable | GatewayRefused, outcome: Outcome) -> None:
    """Troubles of the gateway as a whole end the pass; one name's are noted with it."""
    if error.code in WIDE:
        raise error
    outcome.failed += 1
    log.warning("name_not_published", name=row.name, code=error.code)
    _note(row, error_code=error.code)


def _make_way(
    row: PublicName,
    wanted: Deployment,
    ours: Mapping[str, Deployment],
    outcome: Outcome,
    client: Gateway,
) -> None:
    outcome.failed += 1
    log.error("name_taken_at_gateway", name=row.name)
    _note(row, error_code="name_taken")
    if wanted.id in ours and _removed(wanted.id, outcome, client):
        _note(row, confirmed="")


def _remove_others(
    ours: Mapping[str, Deployment],
    wanted: Sequence[tuple[PublicName, Deployment]],
    outcome: Outcome,
    client: Gateway,
) -> None:
    """Retired ones, and any that no row knows. With no name at all wanted, this looks like the
    wrong database rather than like the end of everything: nothing is removed."""
    kept = {deployment.id for _row, deployment in wanted}
    if ours and not kept:
        log.error("names_all_unknown", spared=len(ours))
        return
    gone = [id for id in ours if id not in kept and _removed(id, outcome, client)]
    there = {*kept, *ours} - set(gone)
    for row in PublicName.objects.exclude(confirmed=""):
        if f"{OURS}{row.name}" not in there:
            _note(row, confirmed="", error_code="")


def _removed(id: str, outcome: Outcome, client: Gateway) -> bool:
    try:
        client.remove_deployment(id)
    except GatewayRefused as error:
        outcome.failed += 1
        log.warning("name_not_removed", id=id, code=error.code)
        return False
    outcome.removed += 1
    return True


def _note(row: PublicName, **values: str) -> None:
    """Only what differs: most passes write nothing."""
    if any(getattr(row, field) != value for field, value in values.items()):
        PublicName.objects.filter(pk=row.pk).update(**values)


def _give_up(code: str) -> None:
    log.warning("names_postponed", code=code)
    PublicName.objects.live().exclude(error_code=code).update(error_code=code)
