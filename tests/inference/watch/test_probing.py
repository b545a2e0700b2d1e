"""One sample from a real process: well, hanging behind a healthy /health, failing, gone."""

import json

from inference.engine import Engine
from inference.watch import Sample, Verdict, judge, probe
from tests.inference.simulator.engines import running
from tests.ports import free_port


def test_a_well_engine() -> None:
    with running() as process, Engine(process.url) as engine:
        found = probe(engine, "nan")
        embedded = probe(engine, "nan", embedding=True)
        assert process.counters()["prompts_seen"] == 2
    assert (found.answered, found.code, embedded.answered) == ("ok", "", "ok")
    assert found.seconds < 1
    assert found.counts is not None
    assert (found.counts.finished, found.counts.generated) == (1, 4)
    assert Sample.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_hang_behind_a_healthy_health_is_found_with_two_samples() -> None:
    with running(SIM_FAULTS="hang") as process, Engine(process.url) as engine:
        assert engine.healthy()
        samples = [probe(engine, "nan", seconds=0.4) for _ in range(2)]
    assert [(sample.answered, sample.code) for sample in samples] == [("failed", "timeout")] * 2
    assert judge(samples[:1]) == Verdict(state="suspect", code="watch_hang")
    assert judge(samples) == Verdict(state="bad", code="watch_hang")


def test_an_unknown_name_and_a_closed_port() -> None:
    with running() as process, Engine(process.url) as engine:
        assert probe(engine, "other").code == "not_found"
    with Engine(f"http://127.0.0.1:{free_port()}") as engine:
        found = probe(engine, "nan")
    assert (found.answered, found.code, found.counts) == ("failed", "unreachable", None)
