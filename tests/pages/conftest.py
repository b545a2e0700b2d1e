"""A slot with a model, as pages of /docs/ speak of it."""

import pytest

from inference.models import CatalogModel, Kind, Slot


@pytest.fixture
def model() -> CatalogModel:
    return CatalogModel.objects.create(
        name="some-model",
        title="Some <b>Model</b>",
        repo="a/b",
        revision="0" * 40,
        licence="MIT",
        weights_mib=1,
        context_length=65_432,
        max_output=12_345,
        capabilities=["tools"],
    )


@pytest.fixture
def slot(model: CatalogModel) -> Slot:
    Slot.objects.create(name="nan-embed", title="E", number=2, kind=Kind.EMBEDDING)
    return Slot.objects.create(name="nan", title="Chat", number=1, model=model)
