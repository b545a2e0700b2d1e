"""Which engine of a slot a request goes to, with either balance."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from inference.places import Place
from tests.inference.pool.proxy import Engine, Proxy, at, running, wait_for

KEYS = [f"member-{number}" for number in range(24)]


@contextmanager
def three(
    run_dir: Path, balance: str, *, chunks: int = 0
) -> Iterator[tuple[Proxy, list[Engine], list[Place]]]:
    with ExitStack() as started:
        engines = [started.enter_context(Engine(chunks=chunks)) for _ in range(3)]
        proxy = started.enter_context(running(run_dir, balance=balance))
        wanted = [at(engine, "ready", number=at_) for at_, engine in enumerate(engines, 1)]
        proxy.until_ready(*wanted)
        yield proxy, engines, wanted


def is_idle(proxy: Proxy) -> bool:
    return not any(server.sessions for server in proxy.pool.look().servers.values())


def served_by(proxy: Proxy, engines: list[Engine], key: str) -> int:
    """Alone: while the call before is not quite over, its engine has more than its share."""
    wait_for(lambda: is_idle(proxy), every=0.01)
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


def moved(first: dict[str, int], after: dict[str, int]) -> set[str]:
    return {key for key in KEYS if after[key] != first[key]}


def test_a_new_engine_takes_over_some_keys_and_moves_no_others(tmp_path: Path) -> None:
    with three(tmp_path, "affinity") as (proxy, engines, wanted):
        proxy.reconcile(*wanted[:2])
        first = {key: served_by(proxy, engines, key) for key in KEYS}
        assert set(first.values()) == {0, 1}
        proxy.until_ready(*wanted)
        after = {key: served_by(proxy, engines, key) for key in KEYS}
        assert moved(first, after) == {key for key in KEYS if after[key] == 2} != set()


def test_a_dead_engine_s_keys_are_served_at_once_and_no_others_move(tmp_path: Path) -> None:
    with three(tmp_path, "affinity") as (proxy, engines, wanted):
        first = {key: served_by(proxy, engines, key) for key in KEYS}
        engines[1].server.refuse()
        orphans = {key for key in KEYS if first[key] == 1}
        at_once = {key: served_by(proxy, engines, key) for key in KEYS}
        assert moved(first, at_once) == orphans
        wait_for(lambda: not proxy.reconcile(*wanted).places["slot01", 2].in_service)
        later = {key: served_by(proxy, engines, key) for key in KEYS}
        assert moved(first, later) == orphans


def test_a_dead_engine_is_passed_over_also_when_the_only_other_one_is_full(tmp_path: Path) -> None:
    """S13: the bound on an engine's share would send everything back to the dead one."""
    with ExitStack() as started:
        engines = [started.enter_context(Engine(chunks=10)) for _ in range(2)]
        proxy = started.enter_context(running(tmp_path, balance="affinity"))
        proxy.until_ready(*(at(engine, "ready", number=n) for n, engine in enumerate(engines, 1)))
        engines[0].server.refuse()
        with ThreadPoolExecutor(12) as threads:
            calls = [threads.submit(proxy.chat, headers={"x-affinity": key}) for key in KEYS]
            assert [call.result().status for call in calls] == [200] * len(KEYS)
        assert engines[1].seen == len(KEYS)


def test_one_key_alone_cannot_fill_one_engine(tmp_path: Path) -> None:
    """One and a half times the mean of 12 open requests on 3 engines is 6."""
    with three(tmp_path, "affinity", chunks=20) as (proxy, engines, _):
        with ThreadPoolExecutor(12) as threads:
            calls = [threads.submit(proxy.chat, headers={"x-affinity": KEYS[0]}) for _ in range(12)]
            assert [call.result().status for call in calls] == [200] * 12
        assert sum(engine.seen for engine in engines) == 12
        assert max(engine.seen for engine in engines) <= 6


def test_requests_without_a_key_are_spread(tmp_path: Path) -> None:
    for balance in ("affinity", "leastconn"):
        folder = tmp_path / balance
        folder.mkdir()
        with three(folder, balance) as (proxy, engines, _):
            assert {served_by(proxy, engines, "") for _ in range(9)} == {0, 1, 2}
