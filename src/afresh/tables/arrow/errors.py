"""Errors of pyarrow as errors of afresh."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from afresh.tables.input_file import translate_errors
from afresh.values.errors import InputError
from afresh.values.formatting import one_line


@contextmanager
def translate_arrow_errors(name: str) -> Iterator[None]:
    """Translate errors of pyarrow and of the operating system in the block into ``InputError``. ``name`` is
    the name of the input in the message."""
    try:
        with translate_errors(name):
            yield
    except pa.ArrowException as error:
        raise InputError(f"cannot be read: {one_line(error)}", path=name) from None
