"""Every metric and every label that rules and dashboards use is there in real scrapes (P8):
of the web, HAProxy and the engine simulator of a running product, and of real vLLM as recorded.
Prometheus itself scrapes them, with the configuration that is deployed.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fleet import Fleet
from tests.monitoring import sources
from tests.monitoring.promql import filled, used
from tests.monitoring.running import Prometheus, configuration, prometheus, saying
from tests.ports import free_port
from tests.stack import Stack
from tests.waiting import wait_until

HERE = Path(__file__).parent
RECORDED = "".join((HERE / f"vllm-{name}.prom").read_text() for name in ("0.32.0", "speculation"))
TARGETS = {"job", "instance"}
WITHIN = 30
"""Seconds until a target that came or went is noticed, with a look each second; more, because the
file is looked at no sooner than five seconds after its last change, and machines are busy."""
REAL = "slot08"
"""The place in the pool under which the recorded engine stands: one that is free."""


@pytest.fixture(scope="module")
def scraped(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    fleet = Fleet(stack)
    fleet.settle()
    fleet.close()
    engines = json.loads(stack.manage("replicas", "targets", "--json"))
    ops = json.loads((stack.state_dir / "ports.json").read_text())["ops"]
    own = {"nan-web": address(stack.url("web")), "nan-edge": f"127.0.0.1:{ops}"}
    with saying(RECORDED) as real:
        engines.append({"targets": [real], "labels": {"slot": REAL}})
        config = configuration(folder, own, engines)
        with prometheus(folder, config, port=free_port()) as found:
            wait_until(lambda: all_up(found, 2 + len(engines)), seconds=40, what="scrapes")
            yield found


def address(url: str) -> str:
    return url.removeprefix("http://").rstrip("/")


def all_up(found: Prometheus, count: int) -> bool:
    return [series["value"][1] for series in found.query("up")] == ["1"] * count


@pytest.mark.parametrize("where", sources.expressions())
def test_metrics_and_labels_exist(scraped: Prometheus, where: str) -> None:
    expression, shown = sources.expressions()[where]
    parts = used(filled(expression))
    assert parts.selectors
    have: set[str] = set()
    for selector in parts.selectors:
        labels = scraped.labels(selector.text)
        assert labels, f"{selector.text} is in no scrape"
        assert selector.labels <= labels, selector.text
        have |= labels
    assert parts.grouped <= have
    made = {"slot"} if "label_replace" in expression else set()
    assert shown <= have | made | TARGETS


def test_prometheus_understands_them_all(scraped: Prometheus) -> None:
    for expression, _ in sources.expressions().values():
        scraped.query(filled(expression))
    groups = wait_until(lambda: evaluated(scraped), seconds=20, what="rules to be evaluated")
    health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert health == dict.fromkeys(sources.rules(), "ok")


def evaluated(scraped: Prometheus) -> Any:
    groups = scraped.ask("rules")["groups"]
    unknown = [rule for group in groups for rule in group["rules"] if rule["health"] == "unknown"]
    return [] if unknown else groups


def test_a_well_product_alerts_nobody_for_long(scraped: Prometheus) -> None:
    """Pending ones may be of its start; the recorded engine is one that no row knows."""
    firing = {alert["labels"]["alertname"] for alert in scraped.ask("alerts")["alerts"]
              if alert["state"] == "firing"}  # fmt: skip
    assert firing == set()


@pytest.mark.parametrize("name", ["vllm:num_requests_running", "vllm:kv_cache_usage_perc"])
def test_the_simulator_counts_under_vllms_names(scraped: Prometheus, name: str) -> None:
    simulated, real = (scraped.labels(f'{name}{{slot="{slot}"}}') for slot in ("slot01", REAL))
    assert simulated == real


def test_our_own_metrics_have_opaque_labels(stack: Stack) -> None:
    text = httpx.get(f"{stack.url('web')}/metrics", timeout=20).text
    ours = [f for f in text_string_to_metric_families(text) if f.name.startswith("nan_")]
    labels = {label for family in ours for sample in family.samples for label in sample.labels}
    assert labels == {"slot", "replica", "state", "kind", "queue"}
    values = {v for f in ours for s in f.samples for k, v in s.labels.items() if k == "replica"}
    assert all(value[0] == "r" and value[1:].isdigit() for value in values)


@contextmanager
def other_targets(scraped: Prometheus, targets: list[dict[str, Any]]) -> Iterator[None]:
    before = scraped.engines.read_text()
    write(scraped.engines, json.dumps(targets))
    try:
        yield
    finally:
        write(scraped.engines, before)


def write(file: Path, text: str) -> None:
    """In one step: Prometheus reads it whenever it changes."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def test_an_engine_that_is_taken_away_is_absent(scraped: Prometheus) -> None:
    """P7: with its target gone there is nothing that could be down, and it must be told all the
    same. For how long it is so before anybody is called: tests of the rules."""
    slot = ("EnginesAbsent", "slot01")
    wait_until(lambda: slot not in scraped.alerts(), seconds=WITHIN, what="its engines")
    left = [t for t in json.loads(scraped.engines.read_text()) if t["labels"]["slot"] != "slot01"]
    with other_targets(scraped, left):
        wait_until(lambda: not scraped.query('up{slot="slot01"}'), seconds=WITHIN, what="no engine")
        wait_until(lambda: slot in scraped.alerts(), seconds=WITHIN, what="EnginesAbsent")
        assert ("EngineDown", "slot01") not in scraped.alerts()
    wait_until(lambda: slot not in scraped.alerts(), seconds=WITHIN, what="its end")


def test_an_engine_that_does_not_answer_is_down(scraped: Prometheus) -> None:
    """P7: its target stays, and nobody listens there."""
    closed = {"targets": [f"127.0.0.1:{free_port()}"], "labels": {"slot": "slot07"}}
    with other_targets(scraped, [*json.loads(scraped.engines.read_text()), closed]):
        down = ("EngineDown", "slot07")
        wait_until(lambda: down in scraped.alerts(), seconds=WITHIN, what="EngineDown")
        assert ("EngineDown", "slot01") not in scraped.alerts()
    wait_until(lambda: down not in scraped.alerts(), seconds=WITHIN, what="its end")
