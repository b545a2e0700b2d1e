"""The guide about errors has every code that a client can get, with its status.

The list comes from what sends them: the edge's own answers and those that it makes of LiteLLM's and
the gate's (deploy/haproxy), and the gateway's events within a stream, which the edge can't change.
"""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings

DEPLOY = Path(settings.BASE_DIR) / "deploy"
GUIDES = Path(settings.BASE_DIR) / "templates" / "docs"
Sent = set[tuple[int, str]]


def lua() -> str:
    return (DEPLOY / "haproxy" / "errors.lua").read_text()


def own_answers() -> Sent:
    """The table OWN, without entries that are only ever sent under another code."""
    table = lua().split("local OWN = {")[1].split("\n}")[0]
    found = {name: int(status) for name, status in re.findall(r"^  (\w+) = { (\d+),", table, re.M)}
    renamed = dict(re.findall(r'own\("(\w+)", "(\w+)"\)', lua()))
    return {(status, renamed.get(name, name)) for name, status in found.items()}


def made_of_others() -> Sent:
    literal = re.findall(r'status = (\d+), code = "(\w+)"', lua())
    kinds = re.findall(r'kind == "(\w+)" then\s+return { status = (\d+), code = kind', lua())
    refused = re.findall(r'status = status, code = "(\w+)"', lua())
    return (
        {(int(status), code) for status, code in literal}
        | {(int(status), code) for code, status in kinds}
        | {(400, code) for code in refused}
    )


def before_a_path_is_known() -> Sent:
    found = json.loads((DEPLOY / "haproxy" / "api-errors.json").read_text())
    return {(int(status), entry["code"]) for status, entry in found.items()}


def within_a_stream() -> Sent:
    text = (DEPLOY / "gateway" / "callbacks" / "nan_stream_errors.py").read_text()
    return {(200, code) for code in re.findall(r'"?code"?[:=] ?"(\w+)"', text)}


SENDERS = (own_answers, made_of_others, before_a_path_is_known, within_a_stream)


def test_the_list_is_read_as_a_whole() -> None:
    """A change of how the edge writes them must not make this test say yes to nothing."""
    assert [len(sender()) for sender in SENDERS] == [18, 7, 2, 1]


@pytest.mark.parametrize("language", ["en", "es"])
def test_every_code_is_in_the_guide(language: str) -> None:
    rows = re.findall(
        r"^\| (\d+) \| `(\w+)` \| [^|]+ \| [^|]+ \|$",
        (GUIDES / language / "errors.md").read_text(),
        re.M,
    )
    told = {(int(status), code) for status, code in rows}
    assert set().union(*(sender() for sender in SENDERS)) == told


def test_what_the_edge_names_is_among_its_answers() -> None:
    names = {code for _status, code in own_answers()}
    for file in ("haproxy.cfg", "slot.cfg"):
        text = (DEPLOY / "haproxy" / file).read_text()
        assert set(re.findall(r"lua\.error_body\((\w+)\)", text)) <= names
