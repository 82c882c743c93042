"""Deletes the objects of copies that no content names any more, after a grace period, and never a named one.

A pass lists all objects. Those that no content names are noted in the store, with the time; those that were
noted longer ago than the grace period are deleted. An object that is younger than this period is left alone,
because it is written before its row.

A writer may bring a content back at any moment. So the hashes to be deleted are first saved under
``DELETING``, in a transaction that no writer of contents overlaps and that checks once more that no content
names them. A commit of one of these contents fails until the deletion is over (``refuse_deleted``). It is
then repeated, and writes its object again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from struct import Struct

from afresh.stores.object_copies import ObjectCopies
from afresh.values.errors import StoreLockedError

DELETING, UNNAMED = "copies.deleting", "copies.unnamed"
_HASH = 32
_ENTRY = Struct(f"<{_HASH}sd")
_TIME = Struct("<d")
_MOST = 100_000  # entries that are noted; the others wait for a later pass
_AT_ONCE = 200
_ABANDONED_S = 900.0  # a deletion that began so long ago was not ended, because its process was killed


@dataclass(frozen=True, slots=True)
class UnnamedObjects:
    """The steps of a pass that need the database. ``named`` returns which of some hashes contents have.
    ``begin`` saves hashes under ``DELETING`` as described above, and returns those that may be deleted.
    ``load`` and ``save`` read and write values of the store."""

    objects: ObjectCopies
    named: Callable[[list[bytes]], set[bytes]]
    begin: Callable[[list[bytes], float], list[bytes]]
    load: Callable[[str], bytes | None]
    save: Callable[[dict[str, bytes | None]], None]

    def delete(self, now_s: float) -> int:
        """Make one pass at the time ``now_s``, and return how many objects were deleted."""
        running = self.load(DELETING)
        if running is not None:
            began_s = _TIME.unpack_from(running)[0]
            if abs(now_s - began_s) < _ABANDONED_S:
                return 0  # another process deletes
            self.objects.delete(hashes_in(running))  # no commit could name them since
            self.save({DELETING: None})
        grace_s = self.objects.grace_s
        noted = dict(_ENTRY.iter_unpack(self.load(UNNAMED) or b""))
        found: dict[bytes, float] = {}
        for page in self.objects.pages():
            old = [digest for digest, written_s in page.items() if written_s <= now_s - grace_s]
            named = self.named(old) if old else set()
            for digest in old:
                if digest not in named and len(found) < _MOST:
                    found[digest] = noted.get(digest, now_s)
        due = [digest for digest, since_s in found.items() if since_s <= now_s - grace_s]
        deleted = 0
        for start in range(0, len(due), _AT_ONCE):
            chosen = self.begin(due[start : start + _AT_ONCE], now_s)
            self.objects.delete(chosen)
            self.save({DELETING: None})
            deleted += len(chosen)
        left = b"".join(_ENTRY.pack(digest, found[digest]) for digest in found.keys() - set(due))
        if left or noted:
            self.save({UNNAMED: left or None})
        return deleted


def pack_deletion(digests: Iterable[bytes], now_s: float) -> bytes:
    """Return the value of ``DELETING`` for these hashes.

    >>> hashes_in(pack_deletion([bytes(32)], 5.0)) == [bytes(32)]
    True
    """
    return _TIME.pack(now_s) + b"".join(digests)


def hashes_in(deletion: bytes) -> list[bytes]:
    """Return the hashes in a value of ``DELETING``."""
    return [deletion[start : start + _HASH] for start in range(_TIME.size, len(deletion), _HASH)]


def refuse_deleted(deletion: bytes | None, digests: Iterable[bytes]) -> None:
    """Raise ``StoreLockedError`` if the object of one of these contents is being deleted."""
    if deletion is not None and not set(hashes_in(deletion)).isdisjoint(digests):
        raise StoreLockedError("old copies in the object store are being deleted: try again in a moment")
