"""Converts rows to one array per column, the form in which one statement sends many rows to PostgreSQL.

Arrays whose values have one type are encoded in PostgreSQL's binary format, which makes a commit twice as
fast as the text format. The format is a header (number of dimensions, whether there are NULLs, type of the
values, length, first index), then the length and the bytes of each value. A length of −1 means NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER, _LENGTH = Struct("!iiIii"), Struct("!i")
_INTEGER, _DOUBLE = Struct("!iq"), Struct("!id")
_NULL = _LENGTH.pack(-1)


class Array:
    """The values of one column, encoded in PostgreSQL's binary format."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


# For each Python type of the values: the number (OID) of PostgreSQL's type (bigint, double precision, text,
# bytea) and of its array type, and the function that encodes a value. PostgreSQL never changes OIDs.
_TYPES: dict[type, tuple[int, int, Callable[[Any], bytes]]] = {
    int: (20, 1016, lambda value: _INTEGER.pack(8, value)),
    float: (701, 1022, lambda value: _DOUBLE.pack(8, value)),
    str: (25, 1009, lambda value: _with_length(value.encode())),
    bytes: (17, 1001, lambda value: _with_length(value)),
}
# psycopg finds the type of a parameter by its class, so each array type has a class of its own.
_ARRAYS: dict[type, type[Array]] = {of: type(f"Array of {of.__name__}", (Array,), {}) for of in _TYPES}


def column_arrays(names: Sequence[str], table: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Convert the rows of ``table`` to a dictionary from column name to the array of the column's values.

    >>> column_arrays(("a", "b"), [(1, True), (2, False)])["b"], column_arrays(("a", "b"), [])
    ([True, False], {'a': [], 'b': []})
    """
    columns: Any = zip(*table, strict=True) if table else [()] * len(names)
    return {name: to_array(column) for name, column in zip(names, columns, strict=True)}


def to_array(column: Sequence[Any]) -> Array | list[Any]:
    """Return a column as an ``Array``, or as a list if its values have several types or an unknown type.

    >>> type(to_array([1, None])).__name__, to_array([1, 2.5]), to_array([None])
    ('Array of int', [1, 2.5], [None])
    """
    types = set(map(type, column)) - {type(None)}
    if len(types) != 1 or not types <= _TYPES.keys():
        return list(column)
    (of,) = types
    number, _, write = _TYPES[of]
    body = b"".join([_NULL if value is None else write(value) for value in column])
    return _ARRAYS[of](_HEADER.pack(1, None in column, number, len(column), 1) + body)


def register_arrays(context: AdaptContext) -> None:
    """Make a connection accept ``Array`` as the value of a parameter."""
    for of, (_, number, _) in _TYPES.items():
        context.adapters.register_dumper(_ARRAYS[of], type("ArrayDumper", (_Dumper,), {"oid": number}))


class _Dumper(Dumper):
    """Sends the bytes of an ``Array``, which are encoded already."""

    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        return obj.data


def _with_length(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value
