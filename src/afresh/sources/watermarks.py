"""How far a cursor, a value that grows with every change, has been read: of a column or of an API's list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Watermarks:
    """How far the cursor column has been read: its highest value at each reading.

    ``known`` holds tuples (time of the reading in seconds, highest value), oldest first. A transaction may
    set ``updated_at`` long before it commits, and several rows may have the same value. So the next reading
    starts at the highest value that was known ``overlap_s`` seconds ago. It finds all rows that are committed
    within ``overlap_s`` seconds after their value was set, whatever clock sets the values.

    >>> read = Watermarks().add(0.0, "a", 300.0).add(200.0, "b", 300.0)
    >>> read.since, read.add(400.0, "c", 300.0).since, read.add(500.0, "c", 300.0).since
    ('a', 'a', 'b')
    """

    known: tuple[tuple[float, object], ...] = ()

    @property
    def since(self) -> object:
        """The cursor value from which the next listing reads; None to read all rows."""
        return self.known[0][1] if self.known else None

    def add(self, now_s: float, newest: object, overlap_s: float) -> Watermarks:
        """Return the watermarks after a reading at ``now_s`` whose highest cursor value was ``newest``.
        Values that the overlap of ``overlap_s`` seconds does not need are dropped."""
        known = (*self.known, (now_s, newest)) if newest is not None else self.known
        old = [at for at, (time_s, _) in enumerate(known) if time_s <= now_s - overlap_s]
        return Watermarks(known[max(old, default=0) :])
