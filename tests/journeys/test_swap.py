"""A swap as an admin starts it and members feel it: not at all."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api import ROUTES, ApiClient, GatewayAdmin
from tests.fleet import Fleet
from tests.journeys.conftest import HOME
from tests.load import Load
from tests.pages.markup import words
from tests.stack import Stack
from tests.visitor import Visitor
from tests.waiting import wait_until


@pytest.fixture
def fleet(_fleet: Fleet) -> Fleet:
    """As it was moved: it goes home once, after the last look."""
    return _fleet


@pytest.fixture(scope="module")
def moved(_fleet: Fleet, load_key: str) -> Iterator[tuple[str, str, Load]]:
    """From one model to another under load: the old one's name, the new one's, the load."""
    fleet = _fleet
    fleet.go_home(HOME)
    old, new = fleet.model(), fleet.other_model()
    with Load(fleet.stack.api, load_key) as load:
        fleet.until(fleet.plan(new), "done", seconds=120)
    yield old, new, load
    fleet.until(fleet.plan(old), "done", seconds=120)


def test_members_lose_nothing_and_every_name_answers(
    fleet: Fleet, moved: tuple[str, str, Load], load_key: str, gateway: GatewayAdmin
) -> None:
    """S5, S11: no member has to do anything; the key was made before the new name existed."""
    old, new, load = moved
    assert load.bad == []
    assert len(load.calls) > 15
    reader = ApiClient(fleet.stack.api, load_key)

    def listed() -> bool:
        return {old, new, "nan"} <= {model["id"] for model in reader.models().json()["data"]}

    wait_until(listed, seconds=10, what="the new name, which is published when the swap is done")
    for name in (old, new, "nan"):
        for route in ROUTES:
            for stream in (False, True):
                client = ApiClient(fleet.stack.api, load_key, model=name)
                answer = client.call(route, "hello", stream=stream)
                assert (answer.status_code, name, route) == (200, name, route)
    engines = {r["model"] for r in fleet.replicas()}
    assert engines == {new}


def test_the_page_tells_what_happened(
    fleet: Fleet, moved: tuple[str, str, Load], staff: Visitor
) -> None:
    old, new, _ = moved
    swap = fleet.ask("Swap.objects.first().pk")
    said = words(staff.get(f"/staff/swaps/{swap}/"))
    titles = fleet.ask(f"[CatalogModel.objects.get(name=n).title for n in {[old, new]!r}]")
    assert all(title in said for title in titles)


def test_usage_is_counted_under_the_called_name(
    fleet: Fleet, moved: tuple[str, str, Load], stack: Stack, gateway: GatewayAdmin
) -> None:
    old, new, _ = moved
    key = gateway.make(key_alias=f"usage-{new}")
    for name in (old, new, "nan"):
        client = ApiClient(stack.api, key["key"], model=name)
        assert [client.call(route).status_code for route in ROUTES] == [200] * 3

    def counted() -> dict[str, int]:
        day = fleet.do("from django.utils import timezone; from datetime import UTC\n"
                       "result = timezone.now().astimezone(UTC).date().isoformat()")  # fmt: skip
        found = gateway.call(
            "GET", f"/user/daily/activity?start_date={day}&end_date={day}&api_key={key['token']}"
        )
        groups = found["results"][0]["breakdown"]["model_groups"] if found["results"] else {}
        return {name: row["metrics"]["successful_requests"] for name, row in groups.items()}

    wait_until(
        lambda: counted() == {old: 3, new: 3, "nan": 3}, seconds=60, what="usage by name", every=2
    )


def test_a_retired_name_says_which_to_use(
    fleet: Fleet, moved: tuple[str, str, Load], load_key: str
) -> None:
    old, new, _ = moved
    long_ago = "timezone.now() - timedelta(days=1)"
    fleet.do(f"""
from datetime import timedelta
from django.utils import timezone
PublicName.objects.filter(name={old!r}).update(retire_at={long_ago}, told_at={long_ago})
result = None""")
    client = ApiClient(fleet.stack.api, load_key, model=old)

    def ended() -> httpx.Response | None:
        answer = client.call()
        return answer if answer.status_code == 404 and new in answer.text else None

    answer = wait_until(ended, seconds=60, what=f"{old} to be retired")
    assert answer.json()["error"]["code"] == "model_retired"
    message = client.call("/v1/messages").json()
    assert message["type"] == "error"
    assert new in message["error"]["message"]
    listed = client.models().json()["data"]
    assert old not in {model["id"] for model in listed}
