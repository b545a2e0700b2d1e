"""Who gets to the fleet's pages, what they cost, and that looking changes nothing."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inference.models import FleetEvent, PublicName, Replica, Server, Slot, Swap
from members.models import User
from tests.inference.staff import rows
from tests.pages.markup import faults
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

LISTS = ["/staff/servers/", "/staff/models/", "/staff/slots/", "/staff/swaps/", "/staff/"]
PAGES = [
    *LISTS,
    "/staff/servers/add/",
    "/staff/servers/gpu-1/",
    "/staff/servers/gpu-1/out/",
    "/staff/servers/gpu-1/delete/",
    "/staff/models/add/",
    "/staff/models/alder/",
    "/staff/models/alder/edit/",
    "/staff/slots/add/",
    "/staff/replicas/{replica}/",
    "/staff/replicas/{replica}/out/",
    "/staff/swaps/new/",
    "/staff/swaps/new/?slot=nan&model=birch",
    "/staff/swaps/{swap}/",
]
LIVE = [
    "/staff/servers/gpu-1/now",
    "/staff/servers/gpu-1/waiting",
    "/staff/slots/now",
    "/staff/replicas/{replica}/now",
    "/staff/swaps/{swap}/now",
]
ACTS = [
    "/staff/servers/add/",
    "/staff/alerts/1/dismiss/",
    "/staff/servers/gpu-1/seats/",
    "/staff/servers/gpu-1/out/",
    "/staff/servers/gpu-1/back/",
    "/staff/servers/gpu-1/token/",
    "/staff/servers/gpu-1/delete/",
    "/staff/servers/gpu-1/replicas/",
    "/staff/servers/gpu-1/fetch/",
    "/staff/models/add/",
    "/staff/models/alder/edit/",
    "/staff/models/alder/offer/",
    "/staff/slots/add/",
    "/staff/replicas/{replica}/in/",
    "/staff/replicas/{replica}/out/",
    "/staff/replicas/{replica}/retry/",
    "/staff/replicas/{replica}/remove/",
    "/staff/swaps/new/?slot=nan&model=birch",
    "/staff/swaps/{swap}/approve/",
    "/staff/swaps/{swap}/retry/",
]
ADMIN = [
    f"/admin/inference/{name}/"
    for name in (
        "alert",
        "catalogmodel",
        "fleetevent",
        "publicname",
        "replica",
        "server",
        "slot",
        "swap",
    )
]
MISSING = [
    "/staff/servers/nowhere/",
    "/staff/servers/nowhere/now",
    "/staff/models/nothing/",
    "/staff/replicas/999999/",
    "/staff/replicas/999999/now",
    "/staff/swaps/999999/",
    "/staff/swaps/999999/now",
]


@pytest.fixture
def fleet(admin: User) -> dict[str, int]:
    slot, replicas, new = rows.small_fleet()
    swap = rows.swap(slot, new, admin)
    return {"replica": replicas[0].pk, "swap": swap.pk}


@pytest.mark.parametrize("page", [*PAGES, *LIVE, *ADMIN])
def test_only_staff_with_a_second_factor(
    page: str, admin: User, outsider: User, fleet: dict[str, int]
) -> None:
    page = page.format(**fleet)
    bare = person("Berta", is_staff=True, is_superuser=True)
    assert Client().get(page).status_code == 302
    assert signed_in(outsider).get(page, follow=True).status_code == 403
    assert signed_in(bare).get(page, follow=True).request["PATH_INFO"] == "/accounts/2fa/"
    assert signed_in(admin).get(page).status_code in (200, 302)


@pytest.mark.parametrize("page", ACTS)
def test_only_staff_act(page: str, outsider: User, fleet: dict[str, int]) -> None:
    page = page.format(**fleet)
    assert signed_in(outsider).post(page).status_code == 403
    assert Client().post(page).status_code == 302


@pytest.mark.parametrize("page", LIVE)
def test_a_page_whose_reader_signed_out_loads_anew(page: str, fleet: dict[str, int]) -> None:
    answer = Client().get(page.format(**fleet), headers={"hx-request": "true"})
    assert (answer.status_code, answer["HX-Refresh"]) == (200, "true")


@pytest.mark.parametrize("language", ["es", "en"])
@pytest.mark.parametrize("page", PAGES)
def test_markup(page: str, language: str, admin: User, fleet: dict[str, int]) -> None:
    User.objects.update(language=language)
    answer = signed_in(admin).get(page.format(**fleet))
    assert (answer.status_code, faults(answer, language=language)) == (200, [])


@pytest.mark.parametrize("page", MISSING)
def test_what_is_not_there(page: str, admin: User) -> None:
    assert signed_in(admin).get(page).status_code == 404
    assert signed_in(admin).get("/staff/swaps/1/nonsense/").status_code == 405


def test_looking_changes_nothing(admin: User, fleet: dict[str, int]) -> None:
    def everything() -> list[list[dict[str, object]]]:
        kinds = (Server, Slot, Replica, Swap, FleetEvent, PublicName)
        return [list(kind.objects.order_by("pk").values()) for kind in kinds]

    before, client = everything(), signed_in(admin)
    for page in [*PAGES, *LIVE]:
        client.get(page.format(**fleet))
    assert everything() == before


# -- What they cost ---------------------------------------------------------------------------
def queries(client: Client, page: str) -> int:
    client.get(page)  # fills the cached counts
    with CaptureQueriesContext(connection) as captured:
        assert client.get(page).status_code == 200
    return len(captured)


def test_queries_do_not_grow_from_one_row_to_three(admin: User) -> None:
    few = costs(admin, 1)
    assert costs(admin, 3) == few


def costs(admin: User, count: int) -> dict[str, int]:
    """Of each page with so many of everything, and everything with something to say."""
    for kind in (Swap, Replica, PublicName, Slot, Server):
        kind.objects.all().delete()
    model = rows.catalogue_model(f"old{count}")
    new = rows.catalogue_model(f"new{count}")
    slots = [rows.slot(f"s{n}", model) for n in range(count)]
    servers = [rows.server(f"g{n}", gpus=8) for n in range(count)]
    for n in range(count):
        for m in range(count):
            one = rows.replica(slots[n], servers[m], gpus=[n], error_code="died")
            rows.alert("replica_down", replica=one)
            rows.tell(servers[m], one.instance)
        swap = rows.swap(slots[n], new, admin, state="running")
        for one in slots[n].replicas.all():
            rows.steps(swap, one, ["draining", "stopping", "starting"])
            rows.part(swap, one, "changing")
        if n:
            Swap.objects.filter(pk=swap.pk).update(state="done", finished_at=timezone.now())
    first = slots[0].replicas.first()
    assert first is not None
    client = signed_in(admin)
    pages = {
        **{page: page for page in (*LISTS, *ADMIN)},
        "row of a swap": f"/admin/inference/swap/{Swap.objects.earliest('pk').pk}/change/",
        "server": "/staff/servers/g0/",
        "server now": "/staff/servers/g0/now",
        "model": f"/staff/models/{model.name}/",
        "slots now": "/staff/slots/now",
        "replica": f"/staff/replicas/{first.pk}/",
        "preview": f"/staff/swaps/new/?slot=s0&model={new.name}",
        "swap": f"/staff/swaps/{Swap.objects.earliest('pk').pk}/",
        "swap now": f"/staff/swaps/{Swap.objects.earliest('pk').pk}/now",
    }
    return {name: queries(client, page) for name, page in pages.items()}
