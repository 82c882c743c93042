"""Format database rows as canonical JSON: two rows have the same text if the database considers them equal.

NULL, '' and 0 differ, and so do 1 and '1'. Numbers are compared by value, whatever their type or scale: 1,
1.0 and 1.00 are equal, −0 is 0, and NaN equals NaN. The order of keys in jsonb does not matter, nor does the
time zone of a time (PostgreSQL sessions use UTC). Columns are sorted by name."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable
from decimal import Decimal
from json.encoder import encode_basestring

_LONGEST_ZEROS = 20
_WHOLE = 2.0**63


def row_json(columns: Iterable[tuple[str, object]]) -> bytes:
    """Return a database row, given as tuples (column name, value), as canonical JSON.

    >>> row_json([("b", None), ("a", Decimal("1.00")), ("c", ""), ("d", b"\\x00")])
    b'{"a":1,"b":null,"c":"","d":{"base64":"AA=="}}'
    """
    # Lone surrogates are escaped, so that different texts stay different even if they are invalid Unicode.
    return _object(columns).encode("utf-8", "backslashreplace")


def value_json(value: object) -> str:
    """Return one value as canonical JSON.

    >>> [value_json(x) for x in (1.0, -0.0, float("nan"), Decimal("12e3"), [True, "é"], 1e300)]
    ['1', '0', '{"number":"NaN"}', '12000', '[true,"é"]', '1e300']
    """
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f'{{"base64":"{b64encode(value).decode()}"}}'
    if isinstance(value, list | tuple):
        return f"[{','.join(value_json(part) for part in value)}]"
    if isinstance(value, dict):
        return _object(value.items())
    return encode_basestring(str(value))


def _object(pairs: Iterable[tuple[str, object]]) -> str:
    parts = (f"{encode_basestring(name)}:{value_json(value)}" for name, value in sorted(pairs))
    return f"{{{','.join(parts)}}}"


def _number(value: float | Decimal) -> str:
    """Return the shortest text of a number. Equal numbers of different types have the same text."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f'{{"number":"{name}"}}'
    if isinstance(value, float):
        if value.is_integer() and abs(value) < _WHOLE:
            return str(int(value))
        value = Decimal(repr(value))
    sign, digits, exponent = value.as_tuple()
    whole = "".join(map(str, digits)).lstrip("0")
    short = whole.rstrip("0")
    return ("-" if sign and short else "") + _with_exponent(short, int(exponent) + len(whole) - len(short))


def _with_exponent(digits: str, exponent: int) -> str:
    """Return digits·10^exponent as text, without an exponent unless that would need more than 20 zeros."""
    if not digits:
        return "0"
    if exponent > _LONGEST_ZEROS or exponent + len(digits) < -_LONGEST_ZEROS:
        return f"{digits}e{exponent}"
    if exponent >= 0:
        return digits + "0" * exponent
    padded = digits.rjust(1 - exponent, "0")
    return f"{padded[:exponent]}.{padded[exponent:]}"
