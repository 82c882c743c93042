"""Whether tables are read and written by pyarrow, which is in the extra ``parquet``.

Parquet and object stores need it. CSV and JSONL do not; with it, they are read and written faster. The values
and messages are the same: one suite of tests runs on both ways."""

from __future__ import annotations

from afresh.values.extras import has_extra, require_extra


def has_pyarrow() -> bool:
    return has_extra("parquet")


def require_pyarrow(what: str) -> None:
    """Raise ``UsageError`` unless pyarrow is installed. ``what`` needs it."""
    if not has_pyarrow():
        require_extra("parquet", what)
