"""Encodes rows as CSV or JSON lines, whole columns at a time instead of row by row."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_CSV_SPECIAL = r'[",\r\n]'
_JSON_SPECIAL = r'["\\\x00-\x1f\x7f]'


def csv_lines(columns: Mapping[str, pa.Array]) -> bytes:
    """Return one line of cells per row, quoted only where needed; a missing value is an empty cell.

    >>> csv_lines({"item": pa.array(["a", 'b "c", d']), "interval": pa.array([0.1, float("inf")])})
    b'a,0.1\\n"b ""c"", d",inf\\n'
    """
    parts: list[pa.Array | pa.Scalar] = []
    for place, cells in enumerate(columns.values()):
        parts += [_scalar("," if place else ""), pc.fill_null(_csv_cells(cells), "")]
    return _join([*parts, _scalar("\n")])


def csv_header(names: Sequence[str]) -> bytes:
    """Return the header line.

    >>> csv_header(["item", "a,b"])
    b'item,"a,b"\\n'
    """
    return csv_lines({str(place): pa.array([name]) for place, name in enumerate(names)})


def json_lines(columns: Mapping[str, pa.Array]) -> bytes:
    """Return one object per row, each on its own line; infinite and missing numbers are null.

    >>> json_lines({"item": pa.array(["a", "new\\nline"]), "interval": pa.array([0.5, float("inf")])})
    b'{"item":"a","interval":0.5}\\n{"item":"new\\\\nline","interval":null}\\n'
    """
    parts: list[pa.Array | pa.Scalar] = []
    for place, (name, cells) in enumerate(columns.items()):
        opening = "," if place else "{"
        parts += [_scalar(f"{opening}{json.dumps(name, ensure_ascii=False)}:"), _json_cells(cells)]
    return _join([*parts, _scalar("}\n")])


def _csv_cells(cells: pa.Array) -> pa.Array:
    if not _is_text(cells):
        return cells.cast(pa.large_string())
    return _escape_matching(cells.cast(pa.large_string()), _CSV_SPECIAL, _quote_csv)


def _quote_csv(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _json_cells(cells: pa.Array) -> pa.Array:
    texts = cells.cast(pa.large_string())
    if _is_text(cells):
        # Escaping leaves the plain texts alone; their quotes are put around all at once.
        inner = _escape_matching(
            texts, _JSON_SPECIAL, lambda text: json.dumps(text, ensure_ascii=False)[1:-1]
        )
        texts = pc.binary_join_element_wise(_scalar('"'), inner, _scalar('"'), _scalar(""))
    elif pa.types.is_floating(cells.type):
        texts = pc.if_else(pc.is_finite(cells), texts, _scalar("null"))
    return pc.fill_null(texts, "null")


def _escape_matching(texts: pa.Array, special: str, escape: Callable[[str], str]) -> pa.Array:
    """Return the texts, of which the few that match ``special`` are replaced by ``escape(text)``."""
    found = pc.fill_null(pc.match_substring_regex(texts, special), False)
    if not pc.any(found).as_py():
        return texts
    escaped = [escape(text) for text in texts.filter(found).to_pylist()]
    return pc.replace_with_mask(texts, found, pa.array(escaped, pa.large_string()))


def _join(parts: Sequence[pa.Array | pa.Scalar]) -> bytes:
    """Return the texts of all rows end to end, which is how the buffer of the joined column holds them."""
    lines = pc.binary_join_element_wise(*parts, _scalar(""))
    _, offsets, data = lines.buffers()
    if data is None:
        return b""
    bounds = pa.Array.from_buffers(pa.int64(), len(lines) + 1, [None, offsets], offset=lines.offset)
    first, last = bounds[0].as_py(), bounds[len(lines)].as_py()
    return bytes(data.slice(first, last - first))


def _is_text(cells: pa.Array) -> bool:
    return bool(pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type))


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
