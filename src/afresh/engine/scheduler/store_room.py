"""Keeps a store within ``[store] max_size``: old versions make room, then new copies are refused.

    used < 95 % of max_size     every copy is stored
    beyond it                   the oldest versions are dropped, but never the newest one of an item
    none of these is left       first copies of items are refused; changes of items that have a copy are
                                stored in the last 5 %: the version they replace makes room again
    used = 100 %                all new copies are refused

A poll whose copy is refused counts as failed, in words: nothing is learned from it, the older copy and its
validators stay, and it is repeated after growing waits. So nothing is lost, and storing goes on by itself
when there is room.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from afresh.engine.logs import log_event
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.stores.store import Store
from afresh.values.formatting import format_bytes
from afresh.values.outcome import Outcome

KEPT_FOR_CHANGES = 0.05  # the share of max_size that first copies may not use
_LOT = 0.01  # the share of max_size that may be written until the store is measured again
_PRUNE_AGAIN_S = 60.0  # after this, a store without old versions is searched for some again


class StoreRoom:
    """How many bytes of new copies the store may still take. Copies count with their size before compression,
    so that the store stays below its limit; ``measure`` finds out how much they really took."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left_bytes = self._trusted_bytes = self._kept_bytes = 0.0
        self._uncommitted_bytes = 0  # of admitted copies, which the store does not have yet
        self._prune_at_s = -float("inf")
        self._is_full = False

    def must_measure(self, polls: Sequence[Outcome]) -> bool:
        """Return whether ``measure`` must be called before ``admit``, because these polls have new copies
        that are larger together than what was known to be free."""
        new_bytes = copied_bytes(polls)
        return new_bytes > 0 and new_bytes > self._trusted_bytes

    def measure(self, new_bytes: int, max_bytes: int, now_s: float) -> None:
        """Measure how much the store takes; if ``new_bytes`` need more room, drop old versions."""
        upkeep = self._store.upkeep
        self._kept_bytes = KEPT_FOR_CHANGES * max_bytes
        wanted = new_bytes + self._kept_bytes + self._uncommitted_bytes
        left, dropped = max_bytes - upkeep.used_bytes(), 0
        if left < wanted and now_s >= self._prune_at_s:
            wanted += _LOT * max_bytes  # a search for old versions is long, so it frees more than is needed
            while left < wanted and (some := upkeep.drop_old_versions(int(wanted - left) + 1)):
                left, dropped = max_bytes - upkeep.used_bytes(), dropped + some
            if left < wanted:
                self._prune_at_s = now_s + _PRUNE_AGAIN_S
        if dropped:
            words = full_words(max_bytes)
            log_event(logging.INFO, "old versions were dropped", versions=dropped, problem=words)
        left -= self._uncommitted_bytes
        self._left_bytes = left
        self._trusted_bytes = max(min(_LOT * max_bytes, left - self._kept_bytes), 0.0)

    def admit(self, polls: Sequence[Outcome], max_bytes: int, recorder: PollRecorder) -> list[Outcome]:
        """Return these polls; those whose new copy has no room are failed polls without a copy."""
        admitted, is_full = [], False
        for poll in polls:
            size = copied_bytes([poll])
            floor = self._kept_bytes if poll.lease.content_hash is None else 0.0
            if size and self._left_bytes - size < floor:
                admitted.append(recorder.refuse_copy(poll, full_words(max_bytes)))
                is_full = True
            else:
                self._left_bytes -= size
                self._trusted_bytes -= size
                admitted.append(poll)
        self._uncommitted_bytes += copied_bytes(admitted)
        self._report(is_full=is_full, stored=copied_bytes(admitted) > 0, max_bytes=max_bytes)
        return admitted

    def record_committed(self, polls: Sequence[Outcome]) -> None:
        """Record that polls which ``admit`` returned are committed. Others may be measured meanwhile."""
        self._uncommitted_bytes -= copied_bytes(polls)

    def _report(self, *, is_full: bool, stored: bool, max_bytes: int) -> None:
        """Log once that the store is full, and once that new copies are stored again."""
        if is_full and not self._is_full:
            log_event(logging.WARNING, "new copies are refused", problem=full_words(max_bytes))
            self._is_full = True
        elif stored and not is_full and self._is_full:
            log_event(logging.INFO, "new copies are stored again")
            self._is_full = False


def copied_bytes(polls: Sequence[Outcome]) -> int:
    """Return the size of the new copies of these polls, in bytes."""
    return sum(len(poll.new_copy.content) for poll in polls if poll.new_copy)


def full_words(max_bytes: int) -> str:
    """Return the reason why a copy is refused.

    >>> full_words(2_000_000_000)
    'the store has reached [store] max_size = 2 GB: remove items, or allow more'
    """
    return f"the store has reached [store] max_size = {format_bytes(max_bytes)}: remove items, or allow more"


def is_full_for_new_items(store: Store, max_bytes: float) -> bool:
    """Return whether the store has no room for the first copies of more items."""
    return store.upkeep.used_bytes() >= (1 - KEPT_FOR_CHANGES) * max_bytes
