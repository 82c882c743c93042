"""Converts the API's description from OpenAPI 3.1 to 3.0, which the packaged Swagger UI can read."""

from __future__ import annotations

from typing import Any

_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def downgrade_openapi(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description in OpenAPI 3.0, whose syntax for nullable types and exclusive bounds differs.

    >>> downgrade_openapi({"openapi": "3.1.0", "x": {"anyOf": [{"type": "string"}, {"type": "null"}]}})
    {'openapi': '3.0.3', 'x': {'type': 'string', 'nullable': True}}
    """
    found: dict[str, Any] = _downgrade(description)
    return found | {"openapi": "3.0.3"}


def _downgrade(value: Any) -> Any:
    if isinstance(value, list):
        return [_downgrade(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _downgrade(each) for key, each in value.items()}
    choices = found.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        del found["anyOf"]
        found |= {**rest[0], "nullable": True} if len(rest) == 1 else {"anyOf": rest, "nullable": True}
    for exclusive, inclusive in _BOUNDS.items():
        bound = found.get(exclusive)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            found |= {inclusive: bound, exclusive: True}
    return found
