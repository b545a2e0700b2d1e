"""Redis may be away for a moment: every operation is a miss, and none breaks a page."""

import socket

import pytest
from django.conf import settings

from nan.cache import FailOpenRedisCache


@pytest.fixture
def away() -> FailOpenRedisCache:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    options = settings.CACHES["default"]["OPTIONS"]
    return FailOpenRedisCache(f"redis://127.0.0.1:{port}/1", {"OPTIONS": dict(options)})


def test_everything_is_a_miss(away: FailOpenRedisCache) -> None:
    assert away.get("a") is None
    assert away.get("a", "fallback") == "fallback"
    assert away.add("a", 1) is True
    assert away.get_many(["a", "b"]) == {}
    assert away.set_many({"a": 1}) == []
    assert (away.touch("a"), away.delete("a"), "a" in away) == (False, False, False)
    away.set("a", 1)
    away.clear()


def test_a_counter_that_can_not_count_starts_again(away: FailOpenRedisCache) -> None:
    with pytest.raises(ValueError, match="'a'"):
        away.incr("a")
