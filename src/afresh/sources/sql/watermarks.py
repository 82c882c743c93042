"""How far a growing column has been read, so that only what is new need be read again.

A transaction may take its ``updated_at`` long before it commits, and several rows may share one value. So
what is read again starts at the highest value that was known ``overlap_s`` ago: whatever commits within
``overlap_s`` of taking its value is seen, whatever the column's type, and whatever the database's clock
says.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The highest values, each with the time when it was read, oldest first.

    >>> read = Watermarks().added(0.0, "a", 300.0).added(200.0, "b", 300.0)
    >>> read.since, read.added(400.0, "c", 300.0).since, read.added(500.0, "c", 300.0).since
    ('a', 'a', 'b')
    """

    known: tuple[tuple[float, object], ...] = ()

    @property
    def since(self) -> object:
        """From where to read, None: from the start."""
        return self.known[0][1] if self.known else None

    def added(self, now_s: float, newest: object, overlap_s: float) -> Watermarks:
        """One more reading; all but the newest that is ``overlap_s`` old are forgotten."""
        known = (*self.known, (now_s, newest)) if newest is not None else self.known
        old = [at for at, (time_s, _) in enumerate(known) if time_s <= now_s - overlap_s]
        return Watermarks(known[max(old, default=0) :])
