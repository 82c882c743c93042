"""Checks the files of a command before the work begins, reads lines of text, and writes pictures."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from afresh.values.errors import InputError, UsageError
from afresh.values.extras import require_extra
from afresh.values.leftovers import LEFTOVERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STREAM = "-"
_FONT_CACHE = "MPLCONFIGDIR"


def check_files(
    inputs: Sequence[str | None], output: str | None, picture: str | None = None, *, as_json: bool = False
) -> None:
    """Raise an error before the work begins if a file cannot be used, so that no long computation is lost.

    ``output`` (rows) and ``picture`` must be writable, have the extension of a known format, and not be an
    input too. ``as_json`` is whether a summary in JSON will be printed on standard output."""
    given = [path for path in inputs if path is not None]
    if given.count(_STREAM) > 1:
        raise UsageError("standard input (-) can be read as one file only: give the others by name")
    if as_json and output == _STREAM:
        raise UsageError("--json and -o - both want standard output: give -o a file")
    read = {os.path.realpath(path) for path in given if path != _STREAM}
    for path in (output, picture):
        if path is not None and path != _STREAM and os.path.realpath(path) in read:
            raise UsageError(f"{path} is also an input: write to another file")
    from afresh.tables.atomic_output import check_writable
    from afresh.tables.formats import format_of

    if output is not None and output != _STREAM:
        format_of(output)
        check_writable(output)
    if picture is not None:
        load_matplotlib("a picture")
        from afresh.plots.style import picture_format

        picture_format(picture)
        check_writable(picture)


def load_matplotlib(what: str) -> None:
    """Import matplotlib, which ``what`` needs; raise ``UsageError`` if it is not installed. It writes its
    cache of fonts to a folder that is removed at once, and not to the home directory."""
    require_extra("plots", what)
    if "matplotlib" in sys.modules or _FONT_CACHE in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="afresh-")
    with LEFTOVERS.path(folder):
        os.environ[_FONT_CACHE] = folder
        try:
            import matplotlib.font_manager  # noqa: F401  # reads the fonts and writes the cache
        finally:
            del os.environ[_FONT_CACHE]
            shutil.rmtree(folder, ignore_errors=True)


def choose_output(output: str | None, *, as_json: bool) -> str | None:
    """Return the path to which rows are written. If ``-o`` is not given, this is standard output (``-``) or,
    with ``--json``, None: no rows are written.

    >>> choose_output(None, as_json=True), choose_output(None, as_json=False)
    (None, '-')
    """
    return None if output is None and as_json else output or _STREAM


def read_lines(path: str, content: str) -> Iterator[tuple[int, str]]:
    """Yield a tuple (line number, text) for each line of a file that is not blank.

    The path ``-`` is standard input. ``content`` says what a line should contain, for error messages."""
    try:
        with nullcontext(sys.stdin) if path == _STREAM else Path(path).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if text := line.strip():
                    yield number, text
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise InputError(f"is not UTF-8 text with {content} a line", path=path) from None


def write_picture(path: str, figure: Figure) -> None:
    """Write the figure to ``path``, in the format of its file extension."""
    from afresh.plots.style import picture_format, render
    from afresh.tables.atomic_output import write_bytes

    write_bytes(path, render(figure, picture_format(path)))
