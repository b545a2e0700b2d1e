"""The gateway's model list follows the rows, whatever happens to either."""

import threading
from collections.abc import Callable

import pytest
from django.conf import settings as site
from django.db import connection
from prometheus_client.registry import REGISTRY

from inference.gateway import Gateway
from inference.models import CatalogModel, PublicName, Slot
from inference.names import life
from inference.names.publish import Outcome, publish
from tests.fakes.gateway import FakeGateway, Manner
from tests.inference.names.conftest import Fleet, model
from tests.inference.names.test_life import retire, told

pytestmark = pytest.mark.django_db
UPDATE = "/model/name:{}/update"


def entry(fake: FakeGateway, name: str) -> dict[str, object]:
    return fake.models.entries[f"name:{name}"]


def errors() -> dict[str, str]:
    return dict(PublicName.objects.exclude(error_code="").values_list("name", "error_code"))


def confirmed() -> list[str]:
    return list(PublicName.objects.exclude(confirmed="").values_list("name", flat=True))


def changes(fake: FakeGateway) -> int:
    return sum(call.method != "GET" for call in fake.calls)


def test_every_live_name_is_an_entry_that_calls_the_slot(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet, embedding: Slot
) -> None:
    assert publish(client=client_of_fake) == Outcome(put=4)
    assert fake.models.names() == ["embed", "nan", "old-one", "small-embed"]
    assert entry(fake, "old-one") == {
        "model_name": "old-one",
        "litellm_params": {
            "model": "hosted_vllm/nan",
            "api_base": f"{site.POOL_URL}/nan/v1",
            "api_key": "os.environ/ENGINE_API_KEY",
            "timeout": 900,
            "stream_timeout": 300,
        },
        "model_info": {
            "id": "name:old-one",
            "mode": "chat",
            "max_tokens": 30_000,
            "max_input_tokens": 100_000,
            "max_output_tokens": 30_000,
            "site": site.SITE_URL,
            "db_model": True,
        },
    }
    embed = entry(fake, "embed")
    assert embed["litellm_params"]["api_base"] == f"{site.POOL_URL}/embed/v1"
    assert embed["model_info"]["mode"] == "embedding"


def test_a_second_pass_changes_nothing(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    publish(client=client_of_fake)
    before = changes(fake)
    assert publish(client=client_of_fake) == Outcome()
    assert changes(fake) == before


def limits(fake: FakeGateway, name: str) -> tuple[int, int]:
    info = entry(fake, name)["model_info"]
    return info["max_input_tokens"], info["max_output_tokens"]


def test_s11_names_through_a_swap(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet, new: CatalogModel
) -> None:
    """And what is promised while either model may answer is what both can do."""
    publish(client=client_of_fake)
    swap = fleet.begin(new)
    publish(client=client_of_fake)
    assert fake.models.names() == ["nan", "old-one"]
    assert (limits(fake, "nan"), limits(fake, "old-one")) == ((50_000, 30_000),) * 2

    fleet.finish(swap)
    publish(client=client_of_fake)
    assert fake.models.names() == ["nan", "new-one", "old-one"]
    assert {limits(fake, name) for name in ("nan", "new-one", "old-one")} == {(50_000, 50_000)}

    told()
    retire()
    assert publish(client=client_of_fake) == Outcome(removed=1)
    assert fake.models.names() == ["nan", "new-one"]
    assert confirmed() == ["nan", "new-one"]


def test_a_slot_without_a_model_has_no_entry(
    fake: FakeGateway, client_of_fake: Gateway, db: None
) -> None:
    life.claim_slot_name(Slot.objects.create(name="empty", title="x", number=4))
    assert publish(client=client_of_fake) == Outcome()
    assert fake.models.names() == []


# -- Drift ----------------------------------------------------------------------------------------


def test_what_the_gateway_lost_or_had_changed_is_put_back(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    publish(client=client_of_fake)
    wanted = dict(fake.models.entries)
    del fake.models.entries["name:nan"]
    changed = {**entry(fake, "old-one"), "litellm_params": {"model": "hosted_vllm/else"}}
    fake.models.entries["name:old-one"] = changed
    assert publish(client=client_of_fake) == Outcome(put=2)
    assert fake.models.entries == wanted


def test_an_entry_of_ours_without_a_row_is_removed(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    publish(client=client_of_fake)
    left = {**entry(fake, "nan"), "model_name": "ghost"}
    left["model_info"] = {**left["model_info"], "id": "name:ghost"}
    fake.models.entries["name:ghost"] = left
    publish(client=client_of_fake)
    assert fake.models.names() == ["nan", "old-one"]


def test_with_nothing_wanted_nothing_is_removed(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    """An empty database looks like a mistake."""
    publish(client=client_of_fake)
    PublicName.objects.all().delete()
    Slot.objects.all().delete()
    publish(client=client_of_fake)
    assert fake.models.names() == ["nan", "old-one"]


def test_others_entries_are_left_alone_and_ours_makes_way(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    publish(client=client_of_fake)
    fake.models.of_file("nan")
    fake.models.of_file("of-somebody")
    assert publish(client=client_of_fake) == Outcome(removed=1, failed=1)
    assert fake.models.names() == ["nan", "of-somebody", "old-one"]
    assert "file:nan" in fake.models.entries
    assert errors() == {"nan": "name_taken"}

    del fake.models.entries["file:nan"]
    assert publish(client=client_of_fake) == Outcome(put=1)
    assert (errors(), confirmed()) == ({}, ["nan", "old-one"])


def test_entries_from_before_a_change_of_address_are_still_ours(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet, settings: object
) -> None:
    publish(client=client_of_fake)
    settings.SITE_URL = "https://elsewhere.example"
    assert publish(client=client_of_fake) == Outcome(put=2)
    assert fake.models.names() == ["nan", "old-one"]


# -- Faults ---------------------------------------------------------------------------------------


def test_a_gateway_that_is_down_is_told_when_it_is_back(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    fake.stop()
    assert publish(client=client_of_fake) is None
    assert errors() == {"nan": "unreachable", "old-one": "unreachable"}
    fake.start()
    assert publish(client=client_of_fake) == Outcome(put=2)
    assert (errors(), confirmed()) == ({}, ["nan", "old-one"])


@pytest.mark.parametrize(
    "manner",
    [Manner.FAIL, Manner.ACT_THEN_FAIL, Manner.ACT_THEN_DROP, Manner.HANG, Manner.ACT_LATE],
)
@pytest.mark.parametrize("path", ["/model/info", "/model/new", UPDATE.format("nan")])
def test_faults_end_with_each_name_there_once(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet, manner: Manner, path: str
) -> None:
    fake.misbehave(path, manner)
    for _ in range(3):
        publish(client=client_of_fake)
    assert fake.models.names() == ["nan", "old-one"]
    assert (errors(), confirmed()) == ({}, ["nan", "old-one"])
    assert publish(client=client_of_fake) == Outcome()


def test_one_refused_name_stops_no_other(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    fake.always[UPDATE.format("nan")] = Manner.REFUSE
    assert publish(client=client_of_fake) == Outcome(put=1, failed=1)
    assert (errors(), confirmed()) == ({"nan": "refused"}, ["old-one"])


@pytest.mark.parametrize("manner", [Manner.FAIL, Manner.ACT_THEN_DROP, Manner.REFUSE])
def test_a_removal_that_failed_is_made_again(
    fake: FakeGateway,
    client_of_fake: Gateway,
    fleet: Fleet,
    new: CatalogModel,
    manner: Manner,
) -> None:
    publish(client=client_of_fake)
    fleet.swap(new)
    told()
    retire()
    fake.misbehave("/model/delete", manner)
    for _ in range(2):
        publish(client=client_of_fake)
    assert fake.models.names() == ["nan", "new-one"]
    assert (errors(), confirmed()) == ({}, ["nan", "new-one"])


# -- Two at once ----------------------------------------------------------------------------------


def in_thread(work: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.django_db(transaction=True)
def test_of_two_publishers_one_works(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    fake.seconds_per_call = 0.1
    outcomes: list[Outcome | None] = []
    threads = [in_thread(lambda: outcomes.append(publish(client=client_of_fake))) for _ in range(4)]
    for thread in threads:
        thread.join()
    assert [found for found in outcomes if found] == [Outcome(put=2)]
    assert fake.models.names() == ["nan", "old-one"]
    assert fake.paths().count("/model/new") == 2


@pytest.mark.django_db(transaction=True)
def test_a_publisher_whose_connection_dies_frees_the_rest(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet
) -> None:
    """As a killed worker's does: the lock is the connection's."""
    fake.hang_seconds = 0.6
    fake.misbehave("/model/info", Manner.ACT_LATE)
    pid: list[int] = []

    def doomed() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pid.append(cursor.fetchone()[0])
        with pytest.raises(Exception, match=r"terminat|closed|lost"):
            publish(client=client_of_fake)

    thread = in_thread(doomed)
    while "/model/info" not in fake.paths():
        thread.join(0.01)
    assert publish(client=client_of_fake) is None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 2000)", pid)
    assert publish(client=client_of_fake) == Outcome(put=2)
    thread.join()
    assert fake.models.names() == ["nan", "old-one"]


# -- Figures --------------------------------------------------------------------------------------


def figure(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_drift_shows_in_the_figures(
    fake: FakeGateway, client_of_fake: Gateway, fleet: Fleet, new: CatalogModel
) -> None:
    model("unused")
    assert figure("nan_name_drift", kind="missing") == 2
    publish(client=client_of_fake)
    assert figure("nan_name_drift", kind="missing") == 0
    fleet.swap(new)
    told()
    retire()
    states = [figure("nan_names", state=state) for state in ("live", "leaving", "retired")]
    assert states == [2, 0, 1]
    assert figure("nan_name_drift", kind="lingering") == 1
    fake.stop()
    publish(client=client_of_fake)
    assert figure("nan_name_drift", kind="failing") == 2
    fake.start()
    publish(client=client_of_fake)
    kinds = [figure("nan_name_drift", kind=k) for k in ("missing", "lingering", "failing")]
    assert kinds == [0, 0, 0]
