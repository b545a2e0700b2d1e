"""Which engine of a slot a request goes to, with either balance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from inference.places import Place
from tests.inference.pool.proxy import Engine, Proxy, at, running

KEYS = [f"member-{number}" for number in range(24)]


@contextmanager
def three(run_dir: Path, balance: str) -> Iterator[tuple[Proxy, list[Engine], list[Place]]]:
    with ExitStack() as started:
        engines = [started.enter_context(Engine()) for _ in range(3)]
        proxy = started.enter_context(running(run_dir, balance=balance))
        wanted = [at(engine, "ready", number=at_) for at_, engine in enumerate(engines, 1)]
        proxy.until_ready(*wanted)
        yield proxy, engines, wanted


def served_by(proxy: Proxy, engines: list[Engine], key: str) -> int:
    before = [engine.seen for engine in engines]
    assert proxy.chat(headers={"x-affinity": key} if key else {}).status == 200
    after = [engine.seen for engine in engines]
    (moved,) = [at_ for at_, count in enumerate(after) if count > before[at_]]
    return moved


def test_a_key_keeps_its_engine_and_a_drain_moves_only_the_keys_of_that_one(
    tmp_path: Path,
) -> None:
    with three(tmp_path, "affinity") as (proxy, engines, wanted):
        first = {key: served_by(proxy, engines, key) for key in KEYS}
        assert {key: served_by(proxy, engines, key) for key in KEYS} == first
        assert set(first.values()) == {0, 1, 2}
        proxy.reconcile(at(engines[1], "drain", number=2), wanted[0], wanted[2])
        after = {key: served_by(proxy, engines, key) for key in KEYS}
        assert [key for key in KEYS if after[key] != first[key]] == [
            key for key in KEYS if first[key] == 1
        ]


def test_requests_without_a_key_are_spread(tmp_path: Path) -> None:
    for balance in ("affinity", "leastconn"):
        folder = tmp_path / balance
        folder.mkdir()
        with three(folder, balance) as (proxy, engines, _):
            assert {served_by(proxy, engines, "") for _ in range(9)} == {0, 1, 2}
