"""The API's description in the older dialect, OpenAPI 3.0, which the Swagger UI of the bundle can read."""

from __future__ import annotations

from typing import Any

_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def older(description: dict[str, Any]) -> dict[str, Any]:
    """The same description; what has no older form (a null among types) becomes its nearest.

    >>> older({"openapi": "3.1.0", "x": {"anyOf": [{"type": "string"}, {"type": "null"}]}})
    {'openapi': '3.0.3', 'x': {'type': 'string', 'nullable': True}}
    """
    found: dict[str, Any] = _translated(description)
    return found | {"openapi": "3.0.3"}


def _translated(value: Any) -> Any:
    if isinstance(value, list):
        return [_translated(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _translated(each) for key, each in value.items()}
    choices = found.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        del found["anyOf"]
        found |= {**rest[0], "nullable": True} if len(rest) == 1 else {"anyOf": rest, "nullable": True}
    for bound, plain in _BOUNDS.items():
        if isinstance(found.get(bound), int | float) and not isinstance(found.get(bound), bool):
            found |= {plain: found[bound], bound: True}
    return found
