"""Changing an entry of the catalogue: not what runs, and not over another admin's change."""

from typing import Any

import pytest
from django.test import Client

from inference.models import CatalogModel, FleetEvent
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import Fleet, html
from tests.people import signed_in

pytestmark = pytest.mark.django_db
ALDER = "/staff/models/alder/edit/"


def sent_by(client: Client, address: str) -> dict[str, Any]:
    """What a browser sends of the form: nothing of the fields that it only shows."""
    form = client.get(address).context["form"]
    shown = {
        field.name: field.value()
        for field in form
        if field.value() is not None and not field.field.disabled
    }
    return {**shown, "seen": form.seen}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("repo", "acme/other"),
        ("revision", "0" * 40),
        ("context_length", "65536"),
        ("kind", "embedding"),
        ("gpus_needed", "2"),
        ("flags", '{"seed": 1}'),
        ("environment", '{"VLLM_CPU_KVCACHE_SPACE": "4"}'),
    ],
)
def test_what_runs_is_not_edited_in_place(
    field: str, value: str, admin: User, fleet: Fleet
) -> None:
    client, before = signed_in(admin), CatalogModel.objects.filter(name="alder").values().get()
    page = client.get(ALDER)
    assert page.context["form"].fields[field].disabled
    assert "In use by nan" in html(page)
    answer = client.post(ALDER, {**sent_by(client, ALDER), field: value})
    assert (answer.status_code, "add a new entry, swap to it" in html(answer)) == (422, True)
    assert CatalogModel.objects.filter(name="alder").values().get() == before


def test_the_rest_of_what_runs_can_be_changed(admin: User, fleet: Fleet) -> None:
    client = signed_in(admin)
    sent = {**sent_by(client, ALDER), "title": "Alder, renamed", "load_seconds": "1200"}
    assert client.post(ALDER, sent).status_code == 302
    model = CatalogModel.objects.get(name="alder")
    assert (model.title, model.load_seconds, model.revision) == (
        "Alder, renamed",
        1200,
        rows.COMMIT,
    )
    found = FleetEvent.objects.filter(what="model_changed").values_list("detail", "actor")
    assert list(found) == [("title, load_seconds", admin.pk)]
    assert ". title, load_seconds" in html(client.get("/staff/models/alder/"))


def test_a_model_that_a_swap_is_to_bring_is_fixed_too(admin: User, fleet: Fleet) -> None:
    slot, _replicas, new = fleet
    client, address = signed_in(admin), "/staff/models/birch/edit/"
    assert not client.get(address).context["form"].fields["flags"].disabled
    swap = rows.swap(slot, new, admin)
    assert client.get(address).context["form"].fields["flags"].disabled
    type(swap).objects.filter(pk=swap.pk).update(state="cancelled")
    assert not client.get(address).context["form"].fields["flags"].disabled


def test_a_second_save_does_not_undo_the_first_unseen(admin: User) -> None:
    rows.catalogue_model("alder")
    client, late = signed_in(admin), sent_by(signed_in(admin), ALDER)
    client.post(ALDER, {**sent_by(client, ALDER), "licence": "MIT"})
    answer = client.post(ALDER, {**late, "title": "Alder 2"})
    page = html(answer)
    assert answer.status_code == 422
    assert f"Changed meanwhile by {admin.call_name}" in page
    assert "Saved meanwhile: MIT" in page
    assert answer.context["form"]["title"].value() == "Alder 2"
    model = CatalogModel.objects.get()
    assert (model.title, model.licence) == ("Alder", "MIT")
    again = {**late, "title": "Alder 2", "seen": answer.context["form"].seen}
    assert client.post(ALDER, {**again, "licence": "MIT"}).status_code == 302
    model.refresh_from_db()
    assert (model.title, model.licence) == ("Alder 2", "MIT")


def test_a_variable_without_quotes_is_told_so(admin: User) -> None:
    rows.catalogue_model("alder")
    client = signed_in(admin)
    sent = {**sent_by(client, ALDER), "environment": '{"VLLM_CPU_KVCACHE_SPACE": 4}'}
    page = html(client.post(ALDER, sent)).replace("&quot;", '"')
    assert 'VLLM_CPU_KVCACHE_SPACE must stand in quotes: "4".' in page
