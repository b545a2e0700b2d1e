"""The query engine's translation between the two protocols, in the installed Node."""

import json
import subprocess
from pathlib import Path
from typing import Any

SCHEMA = {
    "User": {"id": "String", "meta": "Json", "keys": "Key", "made": "DateTime"},
    "Key": {"data": "Json"},
}


def node(home: Path, script: str, given: Any) -> Any:
    command = [
        home / "bin" / "node",
        "-e",
        f"const given = JSON.parse(process.argv[1]);{script}",
        json.dumps(given),
    ]
    done = subprocess.run(
        command, cwd=home / "engine", capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def request(home: Path, document: str) -> Any:
    script = (
        "const { Translator } = require('./protocol');"
        "console.log(JSON.stringify(new Translator(given.schema).request(given.document)))"
    )
    return node(home, script, {"schema": SCHEMA, "document": document})


def test_a_query(gateway_home: Path) -> None:
    document = (
        'query { result: findManyUser(take: -3, where: {id: {in: ["a", "b\\"\\n"]}})'
        " { id keys(take: 1) { data } } }"
    )
    inner = {"arguments": {"take": 1}, "selection": {"data": True}}
    assert request(gateway_home, document) == {
        "alias": "result",
        "query": {
            "action": "findMany",
            "modelName": "User",
            "query": {
                "arguments": {"take": -3, "where": {"id": {"in": ["a", 'b"\n']}}},
                "selection": {"id": True, "keys": inner},
            },
        },
    }


def test_json_columns_are_tagged_and_others_are_not(gateway_home: Path) -> None:
    document = (
        'mutation { result: createOneUser(data: {id: "x", meta: "{\\"a\\":1}",'
        ' keys: {create: {data: "[]"}}}) { id } }'
    )
    found = request(gateway_home, document)["query"]["query"]["arguments"]
    assert found == {
        "data": {
            "id": "x",
            "meta": {"$type": "Json", "value": '{"a":1}'},
            "keys": {"create": {"data": {"$type": "Json", "value": "[]"}}},
        }
    }


def test_numbers_beyond_what_javascript_counts(gateway_home: Path) -> None:
    found = request(
        gateway_home, "query { result: findFirstUser(skip: 9007199254740993, take: 1.5) { id } }"
    )
    assert found["query"]["query"]["arguments"] == {
        "skip": {"$type": "BigInt", "value": "9007199254740993"},
        "take": 1.5,
    }


def test_an_answer_loses_its_type_tags_but_raw_results_keep_them(gateway_home: Path) -> None:
    tagged = [
        {
            "made": {"$type": "DateTime", "value": "2026-01-01"},
            "n": {"$type": "BigInt", "value": "7"},
        }
    ]
    script = (
        "const { response } = require('./protocol');"
        "console.log(JSON.stringify(['findMany', 'queryRaw'].map((action) =>"
        " response({ data: { x: given } }, { query: { action }, alias: 'result' }))))"
    )
    assert node(gateway_home, script, tagged) == [
        {"data": {"result": [{"made": "2026-01-01", "n": 7}]}},
        {"data": {"result": tagged}},
    ]


def test_a_broken_document_is_refused_without_repeating_it(gateway_home: Path) -> None:
    script = (
        "const { parse } = require('./graphql');"
        "try { parse(given) } catch (error) { console.log(JSON.stringify(error.message)) }"
    )
    assert (
        node(gateway_home, script, 'query { findMany(where: {id: "secret"')
        == "GraphQL: expected } at 37"
    )
