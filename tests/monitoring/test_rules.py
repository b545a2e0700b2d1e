"""Alerts fire within their time and not before (P7), and what they point at exists."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.monitoring import sources
from tests.monitoring.promql import Selector, filled, used
from tests.monitoring.running import program

CASES = sorted((sources.PROMETHEUS / "tests").glob("*.yml"))
OPERATIONS = sources.ROOT / "docs" / "operations.md"
KNOWN = json.loads((sources.ROOT / "tests" / "contract" / "vllm_metrics.json").read_text())
SPECULATION = Path(__file__).with_name("vllm-speculation.prom").read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_alerts_fire_within_their_time(case: Path) -> None:
    run = subprocess.run(
        [program("promtool"), "test", "rules", case.name],
        capture_output=True,
        text=True,
        cwd=case.parent,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_alert_has_a_case() -> None:
    """One in which it fires."""
    text = "\n".join(case.read_text() for case in CASES)
    fired = set(re.findall(r"alertname: (\w+)\n\s+eval_time: \w+\n\s+exp_alerts:(?! \[\])", text))
    assert fired == set(sources.rules())


def test_every_alert_says_what_to_do() -> None:
    """Its runbook is a paragraph of the operations page, under that anchor."""
    heads = re.findall(r"^#+ (.+)$", OPERATIONS.read_text(), re.MULTILINE)
    anchors = {"#" + re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    runbooks = {rule["annotations"]["runbook"] for rule in sources.rules().values()}
    assert runbooks - anchors == set()


def test_the_configuration_is_one() -> None:
    config = sources.PROMETHEUS / "prometheus.yml"
    run = subprocess.run(
        [program("promtool"), "check", "config", str(config)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_metrics_of_the_engine_exist_in_the_pinned_version() -> None:
    """Names move between versions of vLLM (P8); `make test-vllm` compares both lists with it."""
    known = {*KNOWN, *(family.name for family in text_string_to_metric_families(SPECULATION))}
    names = {
        re.sub(r"_(bucket|count|sum|total)$", "", selector.name)
        for expression, _ in sources.expressions().values()
        for selector in used(filled(expression)).selectors
        if selector.name.startswith("vllm:")
    }
    assert names - known == set()


def test_what_an_expression_uses() -> None:
    """The reader itself."""
    found = used('sum by (slot, le) (rate(a:b_total{x="1",y=~"2.*"}[5m])) > 3 and on (z) up == 0')
    assert found.selectors == (
        Selector('a:b_total{x="1",y=~"2.*"}', "a:b_total", frozenset({"x", "y"})),
        Selector("up", "up", frozenset()),
    )
    assert found.grouped == {"slot", "le", "z"}
    made = used('max by (slot) (label_replace(c{p="q"}, "slot", "$1", "p", "(.*)")) == 0')
    assert (made.selectors[0].name, made.grouped) == ("c", {"p"})
    assert used("time() - d > 1e3").selectors == (Selector("d", "d", frozenset()),)
