"""What HAProxy would obey is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inference import pool
from inference.places import Place
from inference.pool import InvalidValue, Pool

GOOD: dict[str, Any] = {
    "backend": "slot01",
    "number": 1,
    "address": "10.0.0.7",
    "port": 8101,
    "want": "ready",
}


@pytest.mark.parametrize(
    "change",
    [
        {"backend": "slot09"},
        {"backend": "slot01;disable frontend api"},
        {"backend": "slot01\n"},
        {"number": 0},
        {"number": 33},
        {"number": True},
        {"number": "1"},
        {"address": "gpu1.example"},
        {"address": "10.0.0.7;shutdown sessions server slot01/r1"},
        {"address": "10.0.0.7\nset server slot01/r1 state ready"},
        {"address": "fe80::1%a;b"},
        {"address": "0.0.0.0"},
        {"address": "224.0.0.1"},
        {"address": 167772167},
        {"port": 0},
        {"port": 65_536},
        {"port": 99_999},
        {"port": -1},
        {"port": "80"},
        {"port": 80.0},
        {"want": "maint"},
        {"want": "ready;x"},
        {"maxconn": 0},
        {"maxconn": 5_000},
    ],
)
def test_a_place_with_a_hostile_value_can_not_exist(change: dict[str, Any]) -> None:
    Place(**GOOD)
    with pytest.raises(InvalidValue):
        Place(**GOOD | change)


def test_commands_check_for_themselves() -> None:
    key = ("slot01", 1)
    assert pool.set_address(key, "fd00::7", 8101).text == (
        "set server slot01/r1 addr fd00::7 port 8101"
    )
    for make in (
        lambda: pool.set_state(("web", 1), "maint"),
        lambda: pool.set_state(key, "ready;quit"),
        lambda: pool.set_address(key, "10.0.0.7", 99_999),
        lambda: pool.set_limit(key, 0),
        lambda: Pool(Path("/tmp/a;b")),
        lambda: Pool(Path("relative")),
    ):
        with pytest.raises(InvalidValue):
            make()


@pytest.mark.parametrize("text", ["a;b", "a\nb", "a b", "", "a" * 200, "a\\", "ñ", "-a\r"])
def test_names_that_are_more_than_names_are_refused(tmp_path: Path, text: str) -> None:
    unreachable = Pool(tmp_path)
    no_reason: Any = f"out{text}x"
    for send in (
        lambda: unreachable.set_names({text: "slot01"}),
        lambda: unreachable.set_names({"nan": text}),
        lambda: unreachable.set_retired({text: "new"}),
        lambda: unreachable.set_retired({"old": text}),
        lambda: unreachable.set_rotation({text: "since 14:05"}),
        lambda: unreachable.set_rotation({"slot01": f"since 14:05{text}x"}),
        lambda: unreachable.set_idle({text: "out"}),
        lambda: unreachable.set_idle({"slot01": no_reason}),
        lambda: unreachable.cut(text, 1),
    ):
        with pytest.raises(InvalidValue):
            send()
    assert list(tmp_path.iterdir()) == []
