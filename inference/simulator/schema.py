"""The smallest believable value that is valid against a JSON schema."""

import math
from typing import Any

_MAX_DEPTH = 8


def example(schema: Any, *, root: Any = None, depth: int = 0) -> Any:
    """Follows `$ref`, `anyOf`, `enum` and bounds; fills required properties only."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return {} if depth == 0 else None
    root = schema if root is None else root
    if "$ref" in schema:
        return example(_resolve(schema["$ref"], root), root=root, depth=depth + 1)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example(schema[key][0], root=root, depth=depth + 1)
    return _by_type(schema, root, depth)


def _by_type(schema: dict[str, Any], root: Any, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        names = schema.get("required", [])
        return {n: example(properties.get(n, {}), root=root, depth=depth + 1) for n in names}
    if kind == "array":
        item = schema.get("items", {})
        return [example(item, root=root, depth=depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return _number(schema)
    return {"boolean": True, "null": None}.get(kind, _string(schema))


def _number(schema: dict[str, Any]) -> Any:
    """1 where the bounds allow it, else the bound that is nearest."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf) + 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum", math.inf) - 1)
    return min(max(1, low), high)


_BY_FORMAT = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "uri": "https://example.org",
}


def _string(schema: dict[str, Any]) -> str:
    text = _BY_FORMAT.get(schema.get("format", ""), "example")
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", len(text) + 999)]


def _resolve(ref: str, root: Any) -> Any:
    node = root
    for part in ref.removeprefix("#/").split("/"):
        node = node.get(part, {}) if isinstance(node, dict) else {}
    return node
