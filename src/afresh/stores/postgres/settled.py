"""Outcomes that were committed although the answer was lost: given again, they count once.

A commit whose connection breaks at the last moment may have happened or not, and a server that is down
cannot say which. The caller hears an error and comes again with the same outcomes, perhaps in other groups;
by then the server is asked first, and outcomes that it had committed are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock

from afresh.stores.postgres.database import CommitUnknownError, PostgresDatabase
from afresh.values.outcome import Outcome, Refusal

_Key = tuple[int, int]


class Settled:
    """The outcomes of one process about which the server was, or has still to be, asked."""

    def __init__(self, database: PostgresDatabase) -> None:
        """None yet."""
        self._database, self._lock = database, RLock()
        self._open: list[tuple[CommitUnknownError, list[_Key]]] = []
        self._done: dict[_Key, Refusal | None] = {}

    def commit(
        self, outcomes: Sequence[Outcome], work: Callable[[Sequence[Outcome]], list[Refusal]]
    ) -> list[Refusal]:
        """Commit those that are not done yet by ``work``; the refusals of all."""
        with self._lock:
            self._find_out()
            rest = [outcome for outcome in outcomes if _key(outcome) not in self._done]
            done = [_key(outcome) for outcome in outcomes if _key(outcome) in self._done]
            try:
                refused = work(rest)
            except CommitUnknownError as error:
                self._open.append((error, [_key(outcome) for outcome in rest]))
                raise
            return [refusal for key in done if (refusal := self._done.pop(key)) is not None] + refused

    def _find_out(self) -> None:
        while self._open:
            unsure, keys = self._open[0]
            if self._database.was_committed(unsure.xid, unsure.process):
                refusals = {refusal.item_id: refusal for refusal in unsure.result}
                self._done |= {key: refusals.get(key[0]) for key in keys}
            self._open.pop(0)


def _key(outcome: Outcome) -> _Key:
    return outcome.lease.item_id, outcome.lease.token
