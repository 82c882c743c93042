"""Whether the cursor of a query proved right: whether it moved with every change that polls found."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

FIRST_PROOF, _MOST_PROOF = 20, 10_000


@dataclass(frozen=True, slots=True)
class CursorTrust:
    """``moved`` changes in a row came with another cursor value. The cursor is proven when these are
    ``needed``. A change without one means that some program writes rows and leaves the cursor alone: then
    twice as many changes are needed as before.

    >>> trust = CursorTrust()
    >>> for _ in range(20):
    ...     trust = trust.add(True)
    >>> trust.is_proven, trust.add(False)
    (True, CursorTrust(moved=0, needed=40))
    """

    moved: int = 0
    needed: int = FIRST_PROOF

    @property
    def is_proven(self) -> bool:
        return self.moved >= self.needed

    def add(self, moved: bool) -> CursorTrust:
        """Return the trust after one more change, with which the cursor ``moved`` or not."""
        if moved:
            return replace(self, moved=min(self.moved + 1, self.needed))
        return CursorTrust(0, min(2 * self.needed, _MOST_PROOF))

    def pack(self) -> bytes:
        return json.dumps([self.moved, self.needed]).encode()

    @classmethod
    def unpack(cls, packed: bytes) -> CursorTrust | None:
        """Return the trust that ``pack`` saved; None if the bytes are something else."""
        try:
            moved, needed = json.loads(packed)
            return cls(int(moved), int(needed))
        except (ValueError, TypeError):
            return None
