from typing import Any

import pytest

from inference.fleet import tell
from inference.models import CatalogModel, Replica, Server, Slot
from tests.inference.fleet import rooms


class Told(list[tuple[str, Any]]):
    """What the server was sent, newest last."""

    def names(self) -> list[str]:
        return [name for name, _ in self]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """The broker is the boundary here; tests/journeys has a real one."""
    sent = Told()

    def record(_server: Server, task: str, *arguments: Any, **_: Any) -> None:
        sent.append((task, arguments))

    monkeypatch.setattr(tell, "_send", record)
    return sent


@pytest.fixture
def old(db: None) -> CatalogModel:
    return rooms.catalog_model("old-model")


@pytest.fixture
def new(db: None) -> CatalogModel:
    return rooms.catalog_model("new-model")


@pytest.fixture
def machine_room(db: None) -> Server:
    return rooms.server()


@pytest.fixture
def chat(old: CatalogModel) -> Slot:
    return rooms.slot(model=old)


@pytest.fixture
def first(chat: Slot, machine_room: Server) -> Replica:
    return rooms.serving(chat, machine_room, 1)


@pytest.fixture
def second(first: Replica, chat: Slot, machine_room: Server) -> Replica:
    return rooms.serving(chat, machine_room, 2)
