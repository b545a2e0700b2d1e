"""Every metric and every label that rules and dashboards use is there in real scrapes (P8):
of the web, HAProxy and the engine simulator of a running product, and of real vLLM as recorded.
Prometheus itself scrapes them, with the configuration that is deployed.
"""

import json
from collections.abc import Iterator
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
