"""Computes what a commit of outcomes changes in the database; SQLite and PostgreSQL share this code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from afresh.stores.codecs import content_hash
from afresh.stores.object_copies import IN_OBJECTS, ObjectCopies
from afresh.stores.rows import PAUSED, STATUS_CODE, Row
from afresh.stores.sql.dialect import ConnectionT, ItemCounts, SqlDatabase
from afresh.values.outcome import NewCopy, Observation, Outcome, Refusal, Spent
from afresh.values.storable_text import replace_unstorable
from afresh.values.stored import minute_of
from afresh.values.zstd_frames import FrameCompressor

_COMPRESSION_LEVEL = 3


@dataclass(frozen=True, slots=True)
class CompressedCopy:
    """A new copy with the hash of its content and the compressed content (``data``)."""

    copy: NewCopy
    hash: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class LockedItem:
    """An item as the transaction finds it. ``token`` is the token of its lease, ``status`` the code of its
    status, ``version`` its newest version, ``recent`` the encoded run of its latest observations."""

    token: int | None
    status: int
    source_id: int
    group_id: int
    version: int
    recent: bytes | None


@dataclass(slots=True)
class AcceptedPoll:
    """An outcome that will be committed. ``compressed`` is its new copy, ``before`` the item before the
    commit, ``version`` the number of the item's newest version after the commit. ``previous_size`` is the
    size of the newest version before the commit in bytes, where an event tells it."""

    outcome: Outcome
    compressed: CompressedCopy | None
    before: LockedItem
    version: int
    previous_size: int | None = None

    @property
    def item_id(self) -> int:
        return self.outcome.lease.item_id

    @property
    def status(self) -> int:
        """The code of the status that the poll found, or of "paused" if a user paused the item meanwhile."""
        return PAUSED if self.before.status == PAUSED else STATUS_CODE[self.outcome.status]


def compress_copies(outcomes: Sequence[Outcome], objects: ObjectCopies | None) -> list[CompressedCopy | None]:
    """Hash and compress the new copy of each outcome; None if an outcome has none. If copies are ``objects``,
    write these. Call this before the transaction, because it takes long and other writers would wait."""
    compressor = FrameCompressor(_COMPRESSION_LEVEL)
    packed = [
        CompressedCopy(copy, content_hash(copy.content), compressor.compress(copy.content)) if copy else None
        for copy in (outcome.new_copy for outcome in outcomes)
    ]
    if objects is None:
        return packed
    objects.put({copy.hash: copy.data for copy in packed if copy})
    return [replace(copy, data=IN_OBJECTS) if copy else None for copy in packed]


def separate_refused(
    outcomes: Sequence[Outcome],
    copies: Sequence[CompressedCopy | None],
    locked: Mapping[int, LockedItem],
) -> tuple[list[AcceptedPoll], list[Refusal]]:
    """Return a tuple: the accepted polls, and the refusals. An outcome is refused if its item was removed, or
    if its lease was lost to another worker or used by an earlier outcome. ``copies`` belong to ``outcomes``
    one by one; ``locked`` are the items that exist, by id."""
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
    """Return a tuple (poll, new copy, id of the copy's media type) for each poll that has a new copy."""
    new = [
        (poll, copy, replace_unstorable(copy.copy.media_type)) for poll in polls if (copy := poll.compressed)
    ]
    media_types = database.name_ids(connection, {media_type for _, _, media_type in new})
    return [(poll, copy, media_types[media_type]) for poll, copy, media_type in new]


def observations_of(polls: Sequence[AcceptedPoll]) -> list[Observation]:
    """Return the observations of these polls. A poll that failed has none."""
    return [seen for poll in polls if (seen := poll.outcome.observation) is not None]


def set_previous_sizes(
    database: SqlDatabase[ConnectionT], connection: ConnectionT, polls: Sequence[AcceptedPoll]
) -> None:
    """Set ``previous_size`` of the polls that have an event, from their items' newest versions."""
    told = [poll for poll in polls if poll.outcome.event and poll.before.version]
    if told:
        given = {"ids": database.as_list([poll.item_id for poll in told])}
        found: dict[int, int] = dict(database.rows(connection, database.statements("commit")["sizes"], given))
        for poll in told:
            poll.previous_size = found.get(poll.item_id)


def feed_rows(polls: Sequence[AcceptedPoll]) -> list[Row]:
    """Return the events of these polls as rows of the feed; see ``SqlFeed.append``."""
    return [_feed_row(poll) for poll in polls if poll.outcome.event]


def _feed_row(poll: AcceptedPoll) -> Row:
    outcome, seen, previous = poll.outcome, poll.outcome.observation, poll.previous_size
    size = previous if poll.compressed is None else len(poll.compressed.copy.content)
    return (
        poll.item_id,
        outcome.lease.key,
        poll.before.source_id,
        outcome.event,
        poll.version,
        outcome.time_s,
        seen.modified_s if seen is not None else None,
        size if outcome.event in ("new", "changed") else None,
        None if outcome.event == "new" else previous,
        None if poll.compressed is None else poll.compressed.copy.change_size,
        int(outcome.for_hooks),
    )


def answer_rows(polls: Sequence[AcceptedPoll]) -> list[Row]:
    """Return the answers of these polls as tuples (item id, token of the lease, Unix seconds, text)."""
    return [
        (p.item_id, p.outcome.lease.token, p.outcome.answer.time_s, replace_unstorable(p.outcome.answer.text))
        for p in polls
        if p.outcome.answer
    ]


def status_changes(polls: Sequence[AcceptedPoll]) -> ItemCounts:
    """Return by how much these polls change the number of items per source, group and status."""
    counts = ItemCounts()
    for poll in polls:
        before, after = poll.before, poll.status
        if before.status != after:
            counts[before.source_id, before.group_id, before.status] -= 1
            counts[before.source_id, before.group_id, after] += 1
    return counts


def sum_spending(outcomes: Sequence[Outcome]) -> dict[tuple[int, str], Spent]:
    """Return the cost of all outcomes, accepted or refused, by (minute since 1970, source)."""
    spending: dict[tuple[int, str], Spent] = {}
    for outcome in outcomes:
        place = minute_of(outcome.time_s), outcome.lease.source
        spending[place] = spending[place] + outcome.spent if place in spending else outcome.spent
    return spending
