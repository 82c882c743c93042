"""What a group of polls leaves behind, in one transaction.

    sort out lost leases ─▶ copies ─▶ states and observations ─▶ tally, audits, events,
                                                                 notices, leases, ledger, values

Contents are hashed and compressed before the transaction begins: others may write meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import zstandard

from afresh.stores.addresses import content_hash
from afresh.stores.minutes import minute_of
from afresh.stores.sqlite.contents import drop_contents, keep_content
from afresh.stores.sqlite.database import Database
from afresh.stores.sqlite.ledger import add_to_ledger
from afresh.stores.sqlite.names import name_ids
from afresh.stores.sqlite.observations import add_audits, append_recent
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import PAUSED, STATUS_CODE, Row, json_list, text_from_mapping
from afresh.stores.sqlite.state import set_values
from afresh.stores.sqlite.tally import Tally, add_to_tally
from afresh.stores.store import Retention
from afresh.stores.texts import storable
from afresh.values.outcome import NewCopy, Outcome, Refusal, Spent

_SQL = load_blocks("commit.sql")
_LEVEL = 3


@dataclass(frozen=True, slots=True)
class _Packed:
    """A copy made ready outside the transaction."""

    copy: NewCopy
    address: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class _Known:
    """An item as the transaction finds it."""

    token: int | None
    status: int
    source_id: int
    group_id: int
    version: int
    recent: bytes | None


@dataclass(slots=True)
class _Poll:
    """One outcome on its way in: ``version`` becomes that of its new copy, if it has one."""

    outcome: Outcome
    packed: _Packed | None
    known: _Known
    version: int


def commit(
    database: Database, outcomes: Sequence[Outcome], values: Mapping[str, bytes | None], retention: Retention
) -> list[Refusal]:
    """Everything or nothing; the outcomes refused."""
    copies = _pack(outcomes)
    with database.write() as connection:
        polls, refused = _sort_out(connection, outcomes, copies)
        _keep_copies(connection, [poll for poll in polls if poll.packed is not None], retention)
        connection.executemany(_SQL["keep_state"], [_state(connection, poll, retention) for poll in polls])
        add_to_tally(connection, _moves(polls))
        seen = [poll.outcome.observation for poll in polls if poll.outcome.observation is not None]
        add_audits(connection, seen, retention)
        connection.executemany(_SQL["queue_event"], [_event(poll) for poll in polls if poll.outcome.event])
        leases = [poll.outcome.lease for poll in polls]
        connection.executemany(_SQL["answer_notice"], [(lease.item_id, lease.leased_s) for lease in leases])
        connection.executemany(_SQL["end_lease"], [(lease.item_id,) for lease in leases])
        add_to_ledger(connection, _spends(outcomes))
        set_values(connection, values)
    return refused


def _pack(outcomes: Sequence[Outcome]) -> list[_Packed | None]:
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    return [
        None if copy is None else _Packed(copy, content_hash(copy.content), compressor.compress(copy.content))
        for copy in (outcome.new_copy for outcome in outcomes)
    ]


def _sort_out(
    connection: sqlite3.Connection, outcomes: Sequence[Outcome], copies: Sequence[_Packed | None]
) -> tuple[list[_Poll], list[Refusal]]:
    ids = json_list(outcome.lease.item_id for outcome in outcomes)
    known = {row[0]: _Known(*row[1:]) for row in connection.execute(_SQL["known"], (ids,))}
    polls: dict[int, _Poll] = {}
    refused = []
    for outcome, packed in zip(outcomes, copies, strict=True):
        item_id = outcome.lease.item_id
        if item_id not in known:
            refused.append(Refusal(item_id, "removed"))
        elif known[item_id].token != outcome.lease.token or item_id in polls:
            refused.append(Refusal(item_id, "lost"))
        else:
            polls[item_id] = _Poll(outcome, packed, known[item_id], known[item_id].version)
    return list(polls.values()), refused


def _keep_copies(connection: sqlite3.Connection, polls: Sequence[_Poll], retention: Retention) -> None:
    media = name_ids(connection, {storable(poll.packed.copy.media_type) for poll in polls if poll.packed})
    for poll in polls:
        if poll.packed is not None:
            _keep_copy(connection, poll, poll.packed, media[storable(poll.packed.copy.media_type)], retention)


def _keep_copy(
    connection: sqlite3.Connection, poll: _Poll, new: _Packed, media_type_id: int, retention: Retention
) -> None:
    item_id, newest = poll.outcome.lease.item_id, poll.known.version
    if connection.execute(_SQL["hash_of"], (item_id, newest)).fetchone() == (new.address,):
        # The same bytes, perhaps normalised or named in another way now.
        connection.execute(_SQL["same_copy"], (new.copy.normal_hash, media_type_id, item_id, newest))
        return
    content_id = keep_content(connection, new.address, len(new.copy.content), new.data)
    poll.version = newest + 1
    row = (item_id, poll.version, content_id, poll.outcome.time_s, media_type_id, new.copy.normal_hash)
    connection.execute(_SQL["add_version"], row)
    if poll.version > retention.versions:
        old = connection.execute(_SQL["drop_versions"], (item_id, poll.version - retention.versions))
        drop_contents(connection, [row[0] for row in old.fetchall()])


def _state(connection: sqlite3.Connection, poll: _Poll, retention: Retention) -> Row:
    outcome, seen = poll.outcome, poll.outcome.observation
    recent = poll.known.recent
    if seen is not None:
        recent = append_recent(connection, recent, seen, retention)
    return (
        outcome.due_s,
        _status(poll),
        outcome.failures,
        storable(outcome.problem),
        seen is not None and seen.changed,
        None if seen is None else seen.time_s,
        seen.time_s if seen is not None and seen.changed else None,
        poll.version,
        outcome.belief,
        None if outcome.validators is None else text_from_mapping(outcome.validators),
        recent,
        outcome.lease.item_id,
    )


def _status(poll: _Poll) -> int:
    """What the poll found, unless a user paused the item meanwhile."""
    return PAUSED if poll.known.status == PAUSED else STATUS_CODE[poll.outcome.status]


def _moves(polls: Sequence[_Poll]) -> Tally:
    tally = Tally()
    for poll in polls:
        old, new = poll.known.status, _status(poll)
        if old != new:
            tally[poll.known.source_id, poll.known.group_id, old] -= 1
            tally[poll.known.source_id, poll.known.group_id, new] += 1
    return tally


def _event(poll: _Poll) -> Row:
    outcome, lease = poll.outcome, poll.outcome.lease
    times = (outcome.time_s, outcome.time_s)
    return (lease.item_id, lease.key, poll.known.source_id, outcome.event, poll.version, *times)


def _spends(outcomes: Sequence[Outcome]) -> dict[tuple[int, str], Spent]:
    """By minute and source; a lost lease's poll was paid for too."""
    spends: dict[tuple[int, str], Spent] = {}
    for outcome in outcomes:
        place = minute_of(outcome.time_s), outcome.lease.source
        spends[place] = spends[place] + outcome.spent if place in spends else outcome.spent
    return spends
