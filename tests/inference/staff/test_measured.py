"""What an engine has said stands for the estimate on the pages; what is estimated says so."""

import re
from typing import Any

import pytest
from django.test import Client

from inference.models import CatalogModel, Replica, Server
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import Fleet, html
from tests.people import signed_in

pytestmark = pytest.mark.django_db
GROUND = "NVIDIA RTX PRO 6000 (96 GiB), vllm 0.33.0, gpu-1,"
NOTE = "This is an estimate; the engine&#x27;s own figure replaces it."


def cells(page: str) -> list[list[str]]:
    """Of each row of the page's first table, as it is read."""
    table = page.split("<tbody>")[1].split("</tbody>")[0]
    plain = [re.sub(r"<[^>]+>", " ", cell) for cell in re.findall(r"<td.*?</td>", table)]
    read = [" ".join(cell.split()) for cell in plain]
    width = len(read) // table.count("<tr>")
    return [read[n : n + width] for n in range(0, len(read), width)]


def preview(client: Client, model: str = "birch") -> str:
    return html(client.get(f"/staff/swaps/new/?slot=nan&model={model}"))


def test_the_models_page_says_measured_beside_measured_figures_only(
    admin: User, fleet: Fleet
) -> None:
    model = fleet[2]
    small = {"index": 0, "name": "NVIDIA RTX 3090", "total_mib": 24_576, "used_mib": 0}
    Server.objects.filter(pk=rows.server("gpu-2").pk).update(gpus=[small])
    client = signed_in(admin)
    first, second = cells(html(client.get("/staff/models/birch/")))
    assert (first[1], second[1]) == ("fits estimate", "fits estimate")
    estimated = (first[2:4], second[2:4])
    rows.measurement(model, Server.objects.get(name="gpu-1"))
    page = html(client.get("/staff/models/birch/"))
    first, second = cells(page)
    assert first[1].startswith(f"measured {GROUND}")
    assert first[2:4] == ["777,216", "23.7"]
    assert (second[1], second[2:4]) == ("fits estimate", estimated[1])
    assert estimated[0] != first[2:4]
    assert NOTE in page  # of the other server


def test_where_all_is_measured_nothing_is_said_of_estimates(admin: User, fleet: Fleet) -> None:
    rows.measurement(fleet[2], Server.objects.get())
    client = signed_in(admin)
    for page in (html(client.get("/staff/models/birch/")), preview(client)):
        assert (NOTE in page, "fits estimate" in page) == (False, False)


def test_the_preview_shows_the_measured_figures_and_their_ground(admin: User, fleet: Fleet) -> None:
    """The target of a swap runs nowhere: what counts is what an engine of it said before."""
    client = signed_in(admin)
    assert [row[2] for row in cells(preview(client))] == ["fits estimate"] * 2
    rows.measurement(fleet[2], Server.objects.get())
    for row in cells(preview(client)):
        assert row[2].startswith(f"measured {GROUND}")
        assert row[3:5] == ["777,216", "23.7"]


def test_what_has_served_fits_whatever_the_estimate_says(admin: User, fleet: Fleet) -> None:
    giant = rows.catalogue_model("giant", weights_mib=400_000)
    client = signed_in(admin)
    page = preview(client, "giant")
    assert [row[2] for row in cells(page)] == ["does not fit estimate"] * 2
    assert "the checks before the start would end this swap" in page
    rows.measurement(giant, Server.objects.get())
    page = preview(client, "giant")
    assert all(row[2].startswith("measured") for row in cells(page))
    assert "the checks before the start would end this swap" not in page
    assert cells(html(client.get("/staff/models/giant/")))[0][1].startswith("measured")
    found = client.get("/staff/models/").context["rows"]
    assert [row.fitting[0].server.name for row in found if row.model == giant] == ["gpu-1"]


@pytest.mark.parametrize(
    "changed",
    [
        {"context_length": 16_384},
        {"revision": "f" * 40},
        {"flags": {"kv-cache-dtype": "fp8"}},
        {"environment": {"VLLM_USE_DEEP_GEMM": "0"}},
    ],
)
def test_told_anything_else_it_is_estimated_again(
    changed: dict[str, Any], admin: User, fleet: Fleet
) -> None:
    rows.measurement(fleet[2], Server.objects.get())
    CatalogModel.objects.filter(name="birch").update(**changed)
    assert [row[2] for row in cells(preview(signed_in(admin)))] == ["fits estimate"] * 2


@pytest.mark.parametrize("other", [{"name": "NVIDIA H100"}, {"total_mib": 81_559}])
def test_on_other_gpus_it_is_estimated(other: dict[str, Any], admin: User, fleet: Fleet) -> None:
    server = Server.objects.get()
    rows.measurement(fleet[2], server)
    server.gpus[1].update(other)
    server.save()
    first, second = cells(preview(signed_in(admin)))
    assert (first[2][:8], second[2]) == ("measured", "fits estimate")


def test_a_host_without_gpus_speaks_for_itself_only(admin: User, db: None) -> None:
    vectors = rows.catalogue_model("vectors", kind="embedding", gpus_needed=0, config={})
    one = rows.server("cpu-1", gpus=0)
    rows.server("cpu-2", gpus=0)
    rows.measurement(vectors, one, gpus=())
    found = [row[1] for row in cells(html(signed_in(admin).get("/staff/models/vectors/")))]
    assert found[0].startswith("measured CPU, vllm 0.33.0, cpu-1,")
    assert found[1] == "not estimated"


def test_the_replicas_page_says_what_its_engine_has(admin: User, fleet: Fleet) -> None:
    client, replica = signed_in(admin), Replica.objects.first()
    assert replica is not None
    address = f"/staff/replicas/{replica.pk}/"
    assert "estimate" in html(client.get(address)).split("KV cache (tokens)")[1][:400]
    rows.measurement(fleet[0].model or fleet[2], replica.server)
    said = html(client.get(address)).split("KV cache (tokens)")[1][:400]
    assert ("777,216" in said, GROUND in said) == (True, True)


def test_flags_that_the_estimate_does_not_follow_are_named(admin: User, fleet: Fleet) -> None:
    client = signed_in(admin)
    assert "does not follow" not in preview(client)
    flags = {"pipeline-parallel-size": 2, "max-num-seqs": 16}
    CatalogModel.objects.filter(name="birch").update(flags=flags)
    for page in (preview(client), html(client.get("/staff/models/birch/"))):
        assert "the estimate does not follow them: <code>pipeline-parallel-size</code>" in page
