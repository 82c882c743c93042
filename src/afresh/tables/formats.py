"""Find the format of a file from its extension, or of a stream without a name from its first bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, TypeAlias

from afresh.values.errors import UsageError, did_you_mean

Layout: TypeAlias = Literal["csv", "parquet", "jsonl"]
Compression: TypeAlias = Literal["gzip", "zstd"]

STANDARD_STREAM = "-"
ENDINGS: dict[str, Layout] = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl"}
COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
_ALSO_CALLED = {".tsv": ".csv", ".txt": ".csv", ".json": ".jsonl", ".ndjson": ".jsonl", ".pq": ".parquet"}
_ALSO_CALLED |= {".bz2": ".gz", ".xz": ".zst", ".zip": ".gz", ".zstd": ".zst", ".gzip": ".gz"}
_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Format:
    """The layout of the rows in a file, and the compression of the file, if any."""

    layout: Layout
    compression: Compression | None = None


def format_of(path: str) -> Format:
    """Return the format that the extension of a file states, for example ``.csv.gz``.

    >>> format_of("items.csv.gz")
    Format(layout='csv', compression='gzip')
    >>> format_of("x.json")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: x.json: unknown ending '.json': did you mean '.jsonl'? \
Use .csv, .parquet or .jsonl, also with .gz or .zst
    """
    name = PurePath(path)
    compression = COMPRESSIONS.get(name.suffix.lower())
    if compression:
        name = name.with_suffix("")
    layout = ENDINGS.get(name.suffix.lower())
    if layout is None:
        raise UsageError(_unknown_ending(path, name.suffix))
    return Format(layout, compression)


def named_format(name: str) -> Format:
    """Return the format with the name ``csv``, ``jsonl.gz``, and so on. The name may begin with a dot.

    >>> named_format("jsonl.zst")
    Format(layout='jsonl', compression='zstd')
    """
    try:
        return format_of(f"x.{name.removeprefix('.')}")
    except UsageError:
        raise UsageError(
            f"unknown format {name!r}: use csv, parquet or jsonl, also with .gz or .zst"
        ) from None


def compression_of(head: bytes) -> Compression | None:
    """Return the compression that the first bytes of a file (``head``) show, or None without compression.

    >>> compression_of(b"item,rate") is None
    True
    """
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def layout_of(head: bytes) -> Layout:
    """Return the layout that the first decompressed bytes of a file show: Parquet, JSONL, or else CSV.

    >>> layout_of(b'{"item": "a"}'), layout_of(b"PAR1..."), layout_of(b"item,rate")
    ('jsonl', 'parquet', 'csv')
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    start = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    return "jsonl" if start.startswith(b"{") else "csv"


def _unknown_ending(path: str, suffix: str) -> str:
    usable = "Use .csv, .parquet or .jsonl, also with .gz or .zst"
    if not suffix:
        return f"{path}: the name has no ending that shows its format. {usable}"
    guess = _ALSO_CALLED.get(suffix.lower())
    known = [guess] if guess else [*ENDINGS, *COMPRESSIONS]
    hint = f": did you mean {guess!r}?" if guess else did_you_mean(suffix, known)
    return f"{path}: unknown ending {suffix!r}{hint} {usable}"
