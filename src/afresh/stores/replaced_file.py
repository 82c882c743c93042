"""Writes a SQLite file completely or not at all: under another name first, synced to disk, then renamed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afresh.values.errors import OutputError
from afresh.values.leftovers import LEFTOVERS

_SQLITE_ENDINGS = ("-wal", "-shm", "-journal")  # of the files that SQLite itself makes beside a database


@contextmanager
def write_then_replace(target: Path) -> Iterator[Path]:
    """Give the path of a new file in the same folder, which becomes ``target`` when the block ends well.

    If the block fails, or the process is ended by a signal, nothing of the new file stays.
    """
    part = target.parent / f".{target.name[:100]}.{uuid.uuid4().hex[:12]}.part"
    with LEFTOVERS.path(part, *_SQLITE_ENDINGS):
        try:
            # Only the user can read it, as a file with the copies of private pages should be.
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            yield part
            with part.open("rb") as complete:
                os.fsync(complete.fileno())
            part.replace(target)
        except OSError as error:
            raise OutputError(f"{target} cannot be written: {error.strerror}") from error
        finally:
            for ending in ("", *_SQLITE_ENDINGS):
                part.with_name(part.name + ending).unlink(missing_ok=True)
