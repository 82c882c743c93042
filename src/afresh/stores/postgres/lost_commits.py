"""Outcomes that may have been committed although the server's answer was lost: given again, they count once.

A commit whose connection breaks at the last moment may have happened or not, and a server that is down cannot
tell. The caller gets an error and comes again with the same outcomes, perhaps in other groups. Then the
server is asked first, and outcomes that it had committed are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock

from afresh.stores.postgres.database import CommitUnknownError, PostgresDatabase
from afresh.values.outcome import Outcome, Refusal

_Key = tuple[int, int]


class CommitResolver:
    """Finds out what became of the commits of this process whose answer was lost."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database, self._lock = database, RLock()
        self._unknown: list[tuple[CommitUnknownError, list[_Key]]] = []
        self._committed: dict[_Key, Refusal | None] = {}

    def commit(
        self, outcomes: Sequence[Outcome], work: Callable[[Sequence[Outcome]], list[Refusal]]
    ) -> list[Refusal]:
        """Commit the outcomes that are not committed yet by ``work``, and return the refusals of all."""
        with self._lock:
            self._resolve()
            rest = [outcome for outcome in outcomes if _key(outcome) not in self._committed]
            done = [_key(outcome) for outcome in outcomes if _key(outcome) in self._committed]
            try:
                refused = work(rest)
            except CommitUnknownError as error:
                self._unknown.append((error, [_key(outcome) for outcome in rest]))
                raise
            return [refusal for key in done if (refusal := self._committed.pop(key)) is not None] + refused

    def _resolve(self) -> None:
        while self._unknown:
            unsure, keys = self._unknown[0]
            if self._database.was_committed(unsure.xid, unsure.process):
                refusals = {refusal.item_id: refusal for refusal in unsure.result}
                self._committed |= {key: refusals.get(key[0]) for key in keys}
            self._unknown.pop(0)


def _key(outcome: Outcome) -> _Key:
    return outcome.lease.item_id, outcome.lease.token
