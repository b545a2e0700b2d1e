"""Names come and go with the models behind them."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from inference.models import CatalogModel, PublicName, Slot
from inference.names import life
from tests.inference.names.conftest import Fleet, model

pytestmark = pytest.mark.django_db
States = Callable[[], dict[str, str]]


def told() -> None:
    PublicName.objects.filter(retire_at__isnull=False).update(told_at=timezone.now())


def retire() -> int:
    """As if the last day of every name had come."""
    later = timezone.now() + timedelta(days=15)
    return life.retire_due(later)


def test_a_slot_has_its_name_and_its_models(fleet: Fleet, states: States) -> None:
    life.claim_all()
    assert states() == {"nan": "live", "old-one": "live"}


def test_names_during_and_after_a_swap(fleet: Fleet, new: CatalogModel, states: States) -> None:
    swap = fleet.begin(new)
    assert states() == {"nan": "live", "old-one": "live"}
    fleet.finish(swap)
    assert states() == {"nan": "live", "old-one": "leaving", "new-one": "live"}
    day = PublicName.objects.get(name="old-one").retire_at
    assert day is not None
    assert timedelta(days=13.9) < day - timezone.now() < timedelta(days=14.1)


def test_finishing_again_keeps_the_last_day(fleet: Fleet, new: CatalogModel) -> None:
    swap = fleet.begin(new)
    fleet.finish(swap)
    first = list(PublicName.objects.values())
    fleet.finish(swap)
    assert list(PublicName.objects.values()) == first


def test_the_gateway_is_told_at_once_when_the_swap_has_committed(
    fleet: Fleet,
    new: CatalogModel,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    swap = fleet.begin(new)
    with django_capture_on_commit_callbacks() as published:
        fleet.finish(swap)
    assert len(published) == 1


def test_a_swap_that_goes_back_leaves_names_as_they_were(fleet: Fleet, new: CatalogModel) -> None:
    before = list(PublicName.objects.values())
    fleet.go_back(fleet.begin(new))
    assert list(PublicName.objects.values()) == before


def test_going_back_after_the_end_lets_the_new_name_leave(
    fleet: Fleet, old: CatalogModel, new: CatalogModel, states: States
) -> None:
    fleet.swap(new)
    life.finish(slot=fleet.slot, old=new, new=old)
    assert states() == {"nan": "live", "old-one": "live", "new-one": "leaving"}


def test_a_name_is_retired_once_its_members_were_told_and_its_day_has_come(
    fleet: Fleet, new: CatalogModel, states: States
) -> None:
    fleet.swap(new)
    assert retire() == 0  # nobody was told
    told()
    assert life.retire_due() == 0  # 14 days are left
    assert retire() == 1
    assert retire() == 0
    assert states() == {"nan": "live", "old-one": "retired", "new-one": "live"}
    assert life.retired_names() == {"old-one": "new-one"}


def test_a_model_that_comes_back_has_its_name_again(
    fleet: Fleet, old: CatalogModel, new: CatalogModel, states: States
) -> None:
    fleet.swap(new)
    told()
    retire()
    fleet.swap(old)
    assert states() == {"nan": "live", "old-one": "live", "new-one": "leaving"}
    assert life.retired_names() == {}
    row = PublicName.objects.get(name="old-one")
    assert (row.retire_at, row.told_at, row.warned_at) == (None, None, None)


def test_a_name_whose_model_is_on_its_way_back_waits(
    fleet: Fleet, old: CatalogModel, new: CatalogModel, states: States
) -> None:
    fleet.swap(new)
    told()
    swap = fleet.begin(old)
    assert retire() == 0
    fleet.go_back(swap)
    assert retire() == 1


def test_the_retired_name_tells_what_to_call_now(
    fleet: Fleet, new: CatalogModel, slot: Slot
) -> None:
    fleet.swap(new)
    told()
    retire()
    fleet.swap(model("third-one"))
    told()
    retire()
    assert life.retired_names() == {"old-one": "third-one", "new-one": "third-one"}


def test_the_name_of_another_slots_model_is_refused_beforehand(
    fleet: Fleet, embedding: Slot, states: States
) -> None:
    life.claim_all()
    with pytest.raises(life.NameTaken) as taken:
        life.begin(slot=fleet.slot, model=embedding.model)
    assert taken.value.name == "small-embed"
    fleet.slot.model = embedding.model
    life.finish(slot=fleet.slot, old=embedding.model, new=embedding.model)
    assert PublicName.objects.get(name="small-embed").slot == embedding


def test_a_retired_name_can_move_to_another_slot(
    fleet: Fleet, old: CatalogModel, new: CatalogModel, embedding: Slot
) -> None:
    fleet.swap(new)
    told()
    retire()
    life.begin(slot=embedding, model=old)
    life.finish(slot=embedding, old=embedding.model, new=old)
    row = PublicName.objects.get(name="old-one")
    assert (row.slot, row.is_settled) == (embedding, True)


def test_a_slot_whose_name_a_model_has_is_an_error(fleet: Fleet, states: States) -> None:
    other = Slot.objects.create(name="old-one", title="x", number=3, model=model("x"))
    with pytest.raises(life.NameTaken):
        life.claim_slot_name(other)
    life.claim_all()  # the others go on
    assert states() == {"nan": "live", "old-one": "live"}


def test_a_stale_slot_revives_nothing(fleet: Fleet, new: CatalogModel, states: States) -> None:
    """Whoever makes missing rows may have read the slot before the swap ended."""
    stale = Slot.objects.select_related("model").get()
    fleet.swap(new)
    life.claim_slot_name(stale)
    assert states() == {"nan": "live", "old-one": "leaving", "new-one": "live"}
