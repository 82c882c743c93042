"""What a group of polls changes, sorted out before any database is touched or while its rows are locked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import zstandard

from afresh.stores.addresses import content_hash
from afresh.stores.minutes import minute_of
from afresh.stores.rows import PAUSED, STATUS_CODE
from afresh.values.outcome import NewCopy, Outcome, Refusal, Spent

_LEVEL = 3
Tally = Counter[tuple[int, int, int]]
"""Items gained or lost by (source id, group id, status code)."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A copy made ready outside the transaction."""

    copy: NewCopy
    address: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Known:
    """An item as the transaction finds it."""

    token: int | None
    status: int
    source_id: int
    group_id: int
    version: int
    recent: bytes | None


@dataclass(slots=True)
class Poll:
    """One outcome on its way in: ``version`` becomes that of its new copy, if it has one."""

    outcome: Outcome
    packed: Packed | None
    known: Known
    version: int

    @property
    def status(self) -> int:
        """What the poll found, unless a user paused the item meanwhile."""
        return PAUSED if self.known.status == PAUSED else STATUS_CODE[self.outcome.status]


def pack(outcomes: Sequence[Outcome]) -> list[Packed | None]:
    """Hash and compress the new copies: others may write meanwhile."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    return [
        None if copy is None else Packed(copy, content_hash(copy.content), compressor.compress(copy.content))
        for copy in (outcome.new_copy for outcome in outcomes)
    ]


def sort_out(
    outcomes: Sequence[Outcome], copies: Sequence[Packed | None], known: Mapping[int, Known]
) -> tuple[list[Poll], list[Refusal]]:
    """The polls that count, and the refused: whose item is gone, or whose lease is another's or was used."""
    polls: dict[int, Poll] = {}
    refused = []
    for outcome, packed in zip(outcomes, copies, strict=True):
        item_id = outcome.lease.item_id
        if item_id not in known:
            refused.append(Refusal(item_id, "removed"))
        elif known[item_id].token != outcome.lease.token or item_id in polls:
            refused.append(Refusal(item_id, "lost"))
        else:
            polls[item_id] = Poll(outcome, packed, known[item_id], known[item_id].version)
    return list(polls.values()), refused


def moves(polls: Sequence[Poll]) -> Tally:
    """How many items changed their status."""
    tally = Tally()
    for poll in polls:
        old, new = poll.known.status, poll.status
        if old != new:
            tally[poll.known.source_id, poll.known.group_id, old] -= 1
            tally[poll.known.source_id, poll.known.group_id, new] += 1
    return tally


def spends(outcomes: Sequence[Outcome]) -> dict[tuple[int, str], Spent]:
    """By minute and source; a lost lease's poll was paid for too."""
    found: dict[tuple[int, str], Spent] = {}
    for outcome in outcomes:
        place = minute_of(outcome.time_s), outcome.lease.source
        found[place] = found[place] + outcome.spent if place in found else outcome.spent
    return found
