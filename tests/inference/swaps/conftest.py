from tests.inference.fleet.conftest import chat, first, machine_room, new, old, second, told

__all__ = ["chat", "first", "machine_room", "new", "old", "second", "told"]
