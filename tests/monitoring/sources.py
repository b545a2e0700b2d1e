"""Every expression of the rules and the dashboards, by a name that says where it stands."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
GRAFANA = ROOT / "deploy" / "grafana"
LEGEND = re.compile(r"\{\{\s*(\w+)\s*\}\}")
LABEL = re.compile(r"\$labels\.(\w+)")


def rules() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def dashboards() -> dict[str, dict[str, Any]]:
    return {file.stem: json.loads(file.read_text()) for file in sorted(GRAFANA.glob("*.json"))}


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions() -> dict[str, tuple[str, frozenset[str]]]:
    """With the labels that its texts show."""
    found = {}
    for name, rule in rules().items():
        shown = LABEL.findall(rule["annotations"]["summary"])
        found[f"rule {name}"] = (rule["expr"], frozenset(shown))
    for board, dashboard in dashboards().items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                where = f"{board}: {panel['title']} {target['refId']}"
                found[where] = (target["expr"], frozenset(LEGEND.findall(target["legendFormat"])))
    return found
