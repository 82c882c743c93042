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


class Integers(Array):
    """An array of the PostgreSQL type ``bigint[]``."""


class Doubles(Array):
    """An array of the PostgreSQL type ``double precision[]``."""


class Texts(Array):
    """An array of the PostgreSQL type ``text[]``."""


class Blobs(Array):
    """An array of the PostgreSQL type ``bytea[]``."""


# Class, number (OID) of the type of the values, and of the type of the array. PostgreSQL never changes OIDs.
_KINDS: tuple[tuple[type[Array], int, int], ...] = (
    (Integers, 20, 1016),
    (Doubles, 701, 1022),
    (Texts, 25, 1009),
    (Blobs, 17, 1001),
)
_VALUE_TYPE = {kind: number for kind, number, _ in _KINDS}
_WRITERS: dict[type, tuple[type[Array], Callable[[Any], bytes]]] = {
    int: (Integers, lambda value: _INTEGER.pack(8, value)),
    float: (Doubles, lambda value: _DOUBLE.pack(8, value)),
    str: (Texts, lambda value: _with_length(value.encode())),
    bytes: (Blobs, lambda value: _with_length(value)),
}


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
    ('Integers', [1, 2.5], [None])
    """
    types = set(map(type, column)) - {type(None)}
    if len(types) != 1 or (writer := _WRITERS.get(types.pop())) is None:
        return list(column)
    kind, write = writer
    body = b"".join([_NULL if value is None else write(value) for value in column])
    return kind(_HEADER.pack(1, None in column, _VALUE_TYPE[kind], len(column), 1) + body)


def register_arrays(context: AdaptContext) -> None:
    """Make a connection accept ``Array`` as the value of a parameter."""
    for kind, _, number in _KINDS:
        dumper = type(f"{kind.__name__}Dumper", (_Dumper,), {"oid": number})
        context.adapters.register_dumper(kind, dumper)


class _Dumper(Dumper):
    """Sends the bytes of an ``Array``, which are encoded already."""

    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        return obj.data


def _with_length(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value
