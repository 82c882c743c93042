"""Outputs are looked at before the work begins, so that a long computation is not lost at its end."""

from __future__ import annotations


def check_outputs(table: str | None, picture: str | None = None) -> None:
    """Refuse a folder that is missing or not writable, and endings that say nothing."""
    from afresh.tables.aside import check_writable
    from afresh.tables.formats import STANDARD_STREAM, format_of

    if table is not None and table != STANDARD_STREAM:
        format_of(table)
        check_writable(table)
    if picture is not None:
        from afresh.plots.style import picture_format

        picture_format(picture)
        check_writable(picture)
