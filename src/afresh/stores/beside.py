"""A SQLite file made whole or not at all: beside the target under another name, synced, then renamed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

from afresh.values.errors import OutputError
from afresh.values.leftovers import LEFTOVERS

_BESIDE = ("-wal", "-shm", "-journal")  # files that SQLite itself makes beside a database


def write_beside(target: Path, fill: Callable[[Path], None]) -> None:
    """Have ``fill`` make the file, which then becomes ``target``; if it cannot, nothing of it stays."""
    part = target.parent / f".{target.name[:100]}.{uuid.uuid4().hex[:12]}.part"
    with LEFTOVERS.path(part, *_BESIDE):
        try:
            # Only the user can read it, as a file with the copies of private pages should be.
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            fill(part)
            with part.open("rb") as whole:
                os.fsync(whole.fileno())
            part.replace(target)
        except OSError as error:
            raise OutputError(f"{target} cannot be written: {error.strerror}") from error
        finally:
            for ending in ("", *_BESIDE):
                part.with_name(part.name + ending).unlink(missing_ok=True)
