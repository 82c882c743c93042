"""Rows turned into one array per column: how PostgreSQL takes many rows in one statement.

Arrays of one kind of value are made ready in PostgreSQL's own binary form, twice as quick for a whole commit
as to write and parse them as text: a header (dimensions, whether there are NULLs, the kind, length, first
index), then the length and bytes of each value, −1 for NULL.
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
    """A column in binary form."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Integers(Array):
    """``bigint[]``"""


class Doubles(Array):
    """``double precision[]``"""


class Texts(Array):
    """``text[]``"""


class Blobs(Array):
    """``bytea[]``"""


# Kind, number of the value's type, number of the array's type; numbers are PostgreSQL's own and fixed.
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


def arrays(names: Sequence[str], table: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """The columns by name.

    >>> arrays(("a", "b"), [(1, True), (2, False)])["b"], arrays(("a", "b"), [])
    ([True, False], {'a': [], 'b': []})
    """
    columns: Any = zip(*table, strict=True) if table else [()] * len(names)
    return {name: array(column) for name, column in zip(names, columns, strict=True)}


def array(column: Sequence[Any]) -> Array | list[Any]:
    """A column in binary form, or as a list where its values are of several kinds or of another.

    >>> type(array([1, None])).__name__, array([1, 2.5]), array([None])
    ('Integers', [1, 2.5], [None])
    """
    types = set(map(type, column)) - {type(None)}
    if len(types) != 1 or (writer := _WRITERS.get(types.pop())) is None:
        return list(column)
    kind, write = writer
    body = b"".join([_NULL if value is None else write(value) for value in column])
    return kind(_HEADER.pack(1, None in column, _VALUE_TYPE[kind], len(column), 1) + body)


def register(context: AdaptContext) -> None:
    """Let a connection take such columns."""
    for kind, _, number in _KINDS:
        dumper = type(f"{kind.__name__}Dumper", (_Dumper,), {"oid": number})
        context.adapters.register_dumper(kind, dumper)


class _Dumper(Dumper):
    """Ready already."""

    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        """As it is."""
        return obj.data


def _with_length(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value
