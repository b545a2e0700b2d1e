"""The rules an answer follows, without a process: tokenizer, schema values, prefix cache."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.simulator import tokens
from inference.simulator.faults import Directives, directives_in
from inference.simulator.prefix_cache import BLOCK, PrefixCache
from inference.simulator.schema import example


@given(st.text())
def test_tokens_give_the_text_back(text: str) -> None:
    assert "".join(tokens.split(text)) == text


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, "example"),
        ({"type": "object", "properties": {"a": {}}}, {}),
        ({"type": "integer", "minimum": 5, "maximum": 9}, 5),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMinimum": 2}, 3),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        ({"type": ["string", "null"]}, "example"),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 7}, 7),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"type": "string", "minLength": 9}, "examplexx"),
        ({"type": "string", "maxLength": 3}, "exa"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "integer"}}}, 1),
    ],
)
def test_schema_examples(schema: dict[str, Any], value: Any) -> None:
    assert example(schema) == value


def test_recursive_schema_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    assert isinstance(example(node), dict)


def test_directives() -> None:
    text = "do [sim:sleep=0.5] this [sim:tokens=7][sim:hang] [sim:status=x] [sim:unknown=1]"
    assert directives_in(text) == Directives(hang=True, sleep=0.5, tokens=7)
    assert directives_in("nothing [sim]") == Directives()


def test_prefix_cache_forgets_the_oldest_blocks() -> None:
    cache = PrefixCache(capacity_tokens=2 * BLOCK)
    one, two = ["a"] * (2 * BLOCK + 1), ["b"] * (2 * BLOCK + 1)
    assert [cache.take(one), cache.take(one), cache.take(two), cache.take(one)] == [
        0,
        2 * BLOCK,
        0,
        0,
    ]


def test_a_prompt_is_never_cached_as_a_whole() -> None:
    cache = PrefixCache(capacity_tokens=1000)
    prompt = ["a"] * (2 * BLOCK)
    assert [cache.take(prompt), cache.take(prompt)] == [0, BLOCK]
