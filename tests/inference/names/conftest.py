"""A slot that serves a model, and others that could take its place."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.db import transaction

from inference.models import CatalogModel, Kind, PublicName, Slot, Swap, SwapState
from inference.names import life


def model(name: str, **fields: object) -> CatalogModel:
    values = {"title": name.title(), "context_length": 100_000, "max_output": 30_000, **fields}
    repo = f"org/{name}"
    return CatalogModel.objects.create(
        name=name, repo=repo, revision="a" * 40, licence="MIT", weights_mib=1, **values
    )


@dataclass
class Fleet:
    """The swap engine's part of it."""

    slot: Slot

    def begin(self, new: CatalogModel) -> Swap:
        assert self.slot.model is not None
        life.begin(slot=self.slot, model=new)
        return Swap.objects.create(
            slot=self.slot, from_model=self.slot.model, to_model=new, state=SwapState.RUNNING
        )

    def finish(self, swap: Swap) -> None:
        with transaction.atomic():
            swap.state = SwapState.DONE
            swap.save()
            self.slot.model = swap.to_model
            self.slot.save()
            life.finish(slot=self.slot, old=swap.from_model, new=swap.to_model)

    def go_back(self, swap: Swap) -> None:
        with transaction.atomic():
            swap.state = SwapState.FAILED
            swap.save()
            life.finish(slot=self.slot, old=swap.to_model, new=swap.from_model)

    def swap(self, new: CatalogModel) -> None:
        self.finish(self.begin(new))


def old_model() -> CatalogModel:
    return model("old-one", capabilities=["tools", "vision"])


def new_model() -> CatalogModel:
    return model(
        "new-one", context_length=50_000, max_output=60_000, capabilities=["tools", "reasoning"]
    )


def fleet_of(serving: CatalogModel) -> Fleet:
    slot = Slot.objects.create(name="nan", title="Chat", number=1, model=serving)
    life.claim_slot_name(slot)
    return Fleet(slot)


@pytest.fixture
def old(db: None) -> CatalogModel:
    return old_model()


@pytest.fixture
def new(db: None) -> CatalogModel:
    return new_model()


@pytest.fixture
def fleet(old: CatalogModel) -> Fleet:
    return fleet_of(old)


@pytest.fixture
def slot(fleet: Fleet) -> Slot:
    return fleet.slot


@pytest.fixture
def embedding(db: None) -> Slot:
    small = model("small-embed", kind=Kind.EMBEDDING, context_length=8_000)
    return Slot.objects.create(
        name="embed", title="Embeddings", number=2, kind=Kind.EMBEDDING, model=small
    )


@pytest.fixture
def states() -> Callable[[], dict[str, str]]:
    def read() -> dict[str, str]:
        return {row.name: state(row) for row in PublicName.objects.all()}

    return read


def state(row: PublicName) -> str:
    if row.retired_at:
        return "retired"
    return "leaving" if row.retire_at else "live"
