"""Reads the API's OpenAPI description into rows for the page ``/api/docs``, which needs no script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A parameter of an operation, or a field of a type."""

    name: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. ``body`` is the type of what is sent, ``answer`` of what comes back; empty if
    there is none. ``problems`` are the other status codes, with their meaning."""

    method: str
    path: str
    summary: str
    needs_token: bool
    parameters: tuple[FieldRow, ...]
    body: str
    answer: str
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type that operations refer to by its name. ``further`` is the rest of its description, after
    the first sentence."""

    name: str
    first_sentence: str
    further: str
    fields: tuple[FieldRow, ...]


def list_operations(description: Node) -> list[Operation]:
    """Return all operations of an OpenAPI description, in its order."""
    return [
        _operation(path, method, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]


def list_types(description: Node) -> list[NamedType]:
    """Return the named types of an OpenAPI description, sorted by name."""
    schemas: Mapping[str, Node] = description.get("components", {}).get("schemas", {})
    return [
        NamedType(name, *split_first_sentence(one.get("description", "")), tuple(_fields(one)))
        for name, one in sorted(schemas.items())
    ]


def split_first_sentence(text: str) -> tuple[str, str]:
    """Return a tuple (first sentence, all others) of a description, without its line breaks.

    >>> split_first_sentence("One change. ``cursor`` is the place\\nafter it.")
    ('One change.', '``cursor`` is the place after it.')
    """
    first, mark, further = " ".join(text.split()).partition(". ")
    return first + mark.rstrip(), further


def describe_type(schema: Node) -> str:
    """Return a type of JSON Schema in words.

    >>> describe_type({"type": "array", "items": {"$ref": "#/components/schemas/ItemOut"}})
    'list of ItemOut'
    >>> describe_type({"anyOf": [{"enum": ["active", "gone"], "type": "string"}, {"type": "null"}]})
    '"active", "gone" or null'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(describe_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f'"{each}"' for each in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if schema.get("type") == "array":
        return f"list of {describe_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {describe_type(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))


def _operation(path: str, method: str, given: Node) -> Operation:
    responses: Mapping[str, Node] = given["responses"]
    parameters = (
        FieldRow(
            one["name"],
            describe_type(one["schema"]),
            bool(one.get("required")),
            one.get("description") or one["schema"].get("description", ""),
        )
        for one in given.get("parameters", ())
    )
    return Operation(
        method.upper(),
        path,
        given.get("summary", ""),
        bool(given.get("security")),
        tuple(parameters),
        _content_type(given.get("requestBody", {})),
        next((_content_type(one) for code, one in responses.items() if code.startswith("2")), ""),
        tuple((code, one["description"]) for code, one in sorted(responses.items()) if code[0] != "2"),
    )


def _content_type(given: Node) -> str:
    """Return the type of a request's or response's content: of JSON its type, else its media type."""
    for media_type, one in given.get("content", {}).items():
        schema = one.get("schema", {})
        return describe_type(schema) if media_type == "application/json" and schema else str(media_type)
    return ""


def _fields(schema: Node) -> Iterable[FieldRow]:
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        yield FieldRow(name, describe_type(one), name in required, one.get("description", ""))
