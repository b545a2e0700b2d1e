"""Names in the pool and retired models, while HAProxy runs and after it was killed."""

from __future__ import annotations

import pytest

from inference.pool import PoolUnavailable
from tests.fakes.raw_http import post
from tests.inference.pool.proxy import Engine, Proxy, at


def test_names_come_and_go_and_survive_a_kill(proxy: Proxy, engine: Engine) -> None:
    proxy.until_ready(at(engine, "ready"))

    def statuses() -> list[int]:
        names = ("chat", "nan", "old")
        return [post(proxy.port, f"/{name}/v1/chat/completions").status for name in names]

    assert statuses() == [200, 404, 404]
    assert proxy.pool.set_names({"chat": "slot01", "nan": "slot01", "old": "slot01"})
    assert statuses() == [200, 200, 200]
    assert proxy.pool.set_names({"nan": "slot01"})
    assert not proxy.pool.set_names({"nan": "slot01"})
    assert statuses() == [404, 200, 404]
    proxy.restart()
    assert statuses() == [404, 200, 404]


def test_what_the_file_says_is_told_to_a_haproxy_that_lost_it(proxy: Proxy) -> None:
    assert proxy.pool.set_names({"chat": "slot01", "nan": "slot02"})
    proxy.pool._ask("admin.sock", f"clear map {proxy.run_dir}/slots.map")
    assert proxy.pool.set_names({"chat": "slot01", "nan": "slot02"})
    assert not proxy.pool.set_names({"chat": "slot01", "nan": "slot02"})


def test_the_file_is_right_although_haproxy_is_down(proxy: Proxy) -> None:
    proxy.kill()
    with pytest.raises(PoolUnavailable):
        proxy.pool.set_names({"later": "slot03"})
    assert (proxy.run_dir / "slots.map").read_text() == "later slot03\n"
    proxy.start()
    assert not proxy.pool.set_names({"later": "slot03"})
