"""The smoke test of one replica, by its model's entry in the catalogue, against a real process."""

from typing import Any

import pytest

from inference.fleet import checking
from inference.models import CatalogModel, Replica
from tests.inference.fleet.conftest import Told
from tests.inference.simulator.engines import PARSERS, running

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("told")]
DRAFTS = '--speculative-config={"method":"mtp","num_speculative_tokens":2}'


def checked(replica: Replica, port: int) -> dict[str, Any]:
    """Each check's code; a task takes some of them, the next one the rest."""
    Replica.objects.filter(pk=replica.pk).update(port=port, state="checking", checks=[])
    for _ in range(5):
        checking.run(replica.pk, replica.instance)
    found = Replica.objects.get(pk=replica.pk)
    return {check["name"]: check["code"] for check in found.checks if check["ok"] is not None}


def test_speculation_is_tested_where_the_flags_have_it(
    first: Replica, old: CatalogModel, told: Told
) -> None:
    names = ("--served-model-name", "old-model", "nan", "--max-model-len=8192", *PARSERS)
    with running(*names) as without, running(*names, DRAFTS) as drafting:
        assert "speculative" not in checked(first, drafting.port)
        flags = {"speculative-config": {"method": "mtp", "num_speculative_tokens": 2}}
        CatalogModel.objects.filter(pk=old.pk).update(flags=flags)
        found = checked(first, drafting.port)
        assert (list(found)[-1], set(found.values())) == ("speculative", {""})
        assert checked(first, without.port)["speculative"] == "smoke_speculative"
