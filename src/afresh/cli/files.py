"""Files are looked at before the work begins, so that a long computation is not lost at its end."""

from __future__ import annotations

import os
from collections.abc import Sequence

from afresh.values.errors import UsageError

_STREAM = "-"


def check_files(
    inputs: Sequence[str | None], output: str | None, picture: str | None = None, *, as_json: bool = False
) -> None:
    """Refuse what cannot be written, endings that say nothing, and one file in two roles."""
    given = [path for path in inputs if path is not None]
    if given.count(_STREAM) > 1:
        raise UsageError("standard input (-) can be read as one file only: give the others by name")
    if as_json and output == _STREAM:
        raise UsageError("--json and -o - both want standard output: give -o a file")
    for path in (output, picture):
        if path is not None and path != _STREAM and any(_same(path, other) for other in given):
            raise UsageError(f"{path} is also an input: write to another file")
    _check_writable(output, picture)


def _same(one: str, other: str) -> bool:
    return other != _STREAM and os.path.realpath(one) == os.path.realpath(other)


def _check_writable(table: str | None, picture: str | None) -> None:
    from afresh.tables.atomic_output import check_writable
    from afresh.tables.formats import format_of

    if table is not None and table != _STREAM:
        format_of(table)
        check_writable(table)
    if picture is not None:
        from afresh.plots.style import picture_format

        picture_format(picture)
        check_writable(picture)
