"""What a PromQL expression uses: each selector with the labels it matches, and the labels that
results are grouped by. A reader for our own rules and dashboards, not for all of PromQL.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

GROUPING = r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)"
SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(?!\w|\s*\()")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
WORDS = frozenset({"and", "or", "unless", "bool", "offset", "by", "on", "without", "ignoring"})
REPLACED = re.compile(r'label_replace\((.*?), "(\w+)", "[^"]*", "(\w+)", "[^"]*"\)', re.DOTALL)
VARIABLES = {"$__rate_interval": "1m", '"$slot"': '".*"', "${slot}": ".*"}


@dataclass(frozen=True)
class Selector:
    text: str
    name: str
    labels: frozenset[str]


@dataclass(frozen=True)
class Used:
    selectors: tuple[Selector, ...]
    grouped: frozenset[str]
    """Labels that the results have, without those that `label_replace` makes."""


def filled(expression: str) -> str:
    """As Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression.replace('"$1"', ""), expression
    return expression


def used(expression: str) -> Used:
    made, sources = set(), set()
    plain = expression
    while found := REPLACED.search(plain):
        made.add(found[2])
        sources.add(found[3])
        plain = plain.replace(found[0], found[1], 1)
    grouped = {label.strip() for part in re.findall(GROUPING, plain) for label in part.split(",")}
    selectors = tuple(_selectors(re.sub(GROUPING, " ", plain)))
    return Used(selectors, frozenset((grouped | sources) - made - {""}))


def _selectors(plain: str) -> Iterator[Selector]:
    for found in SELECTOR.finditer(re.sub(r"\[[^\]]*\]", " ", plain)):
        name, matchers = found[1], found[2] or ""
        if name not in WORDS and not (found.start() and plain[found.start() - 1].isdigit()):
            yield Selector(name + matchers, name, frozenset(MATCHER.findall(matchers)))
