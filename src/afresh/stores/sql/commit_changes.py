"""What a group of outcomes changes: computed before the transaction, or from the rows that it locked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import zstandard

from afresh.stores.codecs import content_hash
from afresh.stores.rows import PAUSED, STATUS_CODE, Row
from afresh.stores.sql.dialect import ConnectionT, ItemCounts, SqlDatabase
from afresh.values.outcome import NewCopy, Observation, Outcome, Refusal, Spent
from afresh.values.storable_text import replace_unstorable
from afresh.values.stored import minute_of

_COMPRESSION_LEVEL = 3


@dataclass(frozen=True, slots=True)
class CompressedCopy:
    """A new copy with its hash and its compressed bytes."""

    copy: NewCopy
    hash: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class LockedItem:
    """An item as the transaction finds it: the token of its lease, its state and its run of observations."""

    token: int | None
    status: int
    source_id: int
    group_id: int
    version: int
    recent: bytes | None


@dataclass(slots=True)
class AcceptedPoll:
    """An outcome that will be committed; ``version`` becomes that of its new copy, if it has one."""

    outcome: Outcome
    compressed: CompressedCopy | None
    before: LockedItem
    version: int

    @property
    def item_id(self) -> int:
        return self.outcome.lease.item_id

    @property
    def status(self) -> int:
        """The status that the poll found, unless a user paused the item in the meantime."""
        return PAUSED if self.before.status == PAUSED else STATUS_CODE[self.outcome.status]


def compress_copies(outcomes: Sequence[Outcome]) -> list[CompressedCopy | None]:
    """Hash and compress the new copies, before the transaction: others may write in the meantime."""
    compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
    return [
        CompressedCopy(copy, content_hash(copy.content), compressor.compress(copy.content)) if copy else None
        for copy in (outcome.new_copy for outcome in outcomes)
    ]


def separate_refused(
    outcomes: Sequence[Outcome],
    copies: Sequence[CompressedCopy | None],
    locked: Mapping[int, LockedItem],
) -> tuple[list[AcceptedPoll], list[Refusal]]:
    """Return the polls that count, and those refused: the item is gone, or the lease was lost or used."""
    polls: dict[int, AcceptedPoll] = {}
    refused = []
    for outcome, copy in zip(outcomes, copies, strict=True):
        item_id = outcome.lease.item_id
        if item_id not in locked:
            refused.append(Refusal(item_id, "removed"))
        elif locked[item_id].token != outcome.lease.token or item_id in polls:
            refused.append(Refusal(item_id, "lost"))
        else:
            polls[item_id] = AcceptedPoll(outcome, copy, locked[item_id], locked[item_id].version)
    return list(polls.values()), refused


def new_copies(
    database: SqlDatabase[ConnectionT], connection: ConnectionT, polls: Sequence[AcceptedPoll]
) -> list[tuple[AcceptedPoll, CompressedCopy, int]]:
    """Return the polls that have a new copy, the copy, and the id of its media type."""
    new = [
        (poll, copy, replace_unstorable(copy.copy.media_type)) for poll in polls if (copy := poll.compressed)
    ]
    media_types = database.name_ids(connection, {media_type for _, _, media_type in new})
    return [(poll, copy, media_types[media_type]) for poll, copy, media_type in new]


def observations_of(polls: Sequence[AcceptedPoll]) -> list[Observation]:
    """Return the observations of the polls that told something."""
    return [seen for poll in polls if (seen := poll.outcome.observation) is not None]


def event_rows(polls: Sequence[AcceptedPoll]) -> list[Row]:
    """Return the events of these polls: item id, key, source id, kind, version and time."""
    return [
        (p.item_id, p.outcome.lease.key, p.before.source_id, p.outcome.event, p.version, p.outcome.time_s)
        for p in polls
        if p.outcome.event
    ]


def status_changes(polls: Sequence[AcceptedPoll]) -> ItemCounts:
    """Return how the number of items per source, group and status changes."""
    counts = ItemCounts()
    for poll in polls:
        before, after = poll.before, poll.status
        if before.status != after:
            counts[before.source_id, before.group_id, before.status] -= 1
            counts[before.source_id, before.group_id, after] += 1
    return counts


def sum_spending(outcomes: Sequence[Outcome]) -> dict[tuple[int, str], Spent]:
    """Return what was spent by minute and source; a poll whose lease was lost was paid for too."""
    spending: dict[tuple[int, str], Spent] = {}
    for outcome in outcomes:
        place = minute_of(outcome.time_s), outcome.lease.source
        spending[place] = spending[place] + outcome.spent if place in spending else outcome.spent
    return spending
