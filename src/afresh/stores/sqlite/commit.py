"""What a group of polls leaves behind, in one transaction.

    sort out lost leases ─▶ copies ─▶ states and observations ─▶ tally, audits, events,
                                                                 notices, leases, ledger, values

Contents are hashed and compressed before the transaction begins: others may write meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from afresh.stores.polls import Known, Packed, Poll, moves, pack, sort_out, spends
from afresh.stores.rows import Row, text_from_mapping
from afresh.stores.sqlite.contents import drop_contents, keep_content
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.ledger import add_to_ledger
from afresh.stores.sqlite.names import name_ids
from afresh.stores.sqlite.observations import add_audits, append_recent
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list
from afresh.stores.sqlite.state import set_values
from afresh.stores.sqlite.tally import add_to_tally
from afresh.stores.store import Retention
from afresh.stores.texts import storable
from afresh.values.outcome import Outcome, Refusal

_SQL = load_blocks("commit.sql")


def commit(
    database: SqliteDatabase,
    outcomes: Sequence[Outcome],
    values: Mapping[str, bytes | None],
    retention: Retention,
) -> list[Refusal]:
    """Everything or nothing; the outcomes refused."""
    copies = pack(outcomes)
    with database.write() as connection:
        polls, refused = sort_out(outcomes, copies, _known(connection, outcomes))
        _keep_copies(connection, [poll for poll in polls if poll.packed is not None], retention)
        connection.executemany(_SQL["keep_state"], [_state(connection, poll, retention) for poll in polls])
        connection.executemany(_SQL["keep_changed"], _changed(polls))
        connection.executemany(_SQL["keep_failures"], _failures(polls))
        add_to_tally(connection, moves(polls))
        seen = [poll.outcome.observation for poll in polls if poll.outcome.observation is not None]
        add_audits(connection, seen, retention)
        connection.executemany(_SQL["queue_event"], [_event(poll) for poll in polls if poll.outcome.event])
        leases = [poll.outcome.lease for poll in polls]
        if connection.execute(_SQL["any_notice"]).fetchone():
            answered = [(lease.item_id, lease.leased_s) for lease in leases]
            connection.executemany(_SQL["answer_notice"], answered)
        connection.executemany(_SQL["end_lease"], [(lease.item_id,) for lease in leases])
        add_to_ledger(connection, spends(outcomes))
        set_values(connection, values)
    return refused


def _known(connection: sqlite3.Connection, outcomes: Sequence[Outcome]) -> dict[int, Known]:
    ids = json_list(outcome.lease.item_id for outcome in outcomes)
    return {row[0]: Known(*row[1:]) for row in connection.execute(_SQL["known"], (ids,))}


def _keep_copies(connection: sqlite3.Connection, polls: Sequence[Poll], retention: Retention) -> None:
    media = name_ids(connection, {storable(poll.packed.copy.media_type) for poll in polls if poll.packed})
    for poll in polls:
        if poll.packed is not None:
            _keep_copy(connection, poll, poll.packed, media[storable(poll.packed.copy.media_type)], retention)


def _keep_copy(
    connection: sqlite3.Connection, poll: Poll, new: Packed, media_type_id: int, retention: Retention
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


def _state(connection: sqlite3.Connection, poll: Poll, retention: Retention) -> Row:
    outcome, seen = poll.outcome, poll.outcome.observation
    recent = poll.known.recent
    if seen is not None:
        recent = append_recent(connection, recent, seen, retention)
    return (
        outcome.due_s,
        poll.status,
        storable(outcome.problem) if outcome.problem else "",
        seen is not None and seen.changed,
        None if seen is None else seen.time_s,
        poll.version,
        outcome.belief,
        _validators(outcome),
        recent,
        outcome.lease.item_id,
    )


def _validators(outcome: Outcome) -> str | None:
    """Those of this poll, None where they are as they were: nobody but the holder of a lease changes them.

    A lease may have been made by hand, without any: that there are none now is always written.
    """
    new = outcome.validators
    return None if new is None or (new and new == outcome.lease.validators) else text_from_mapping(new)


def _changed(polls: Sequence[Poll]) -> list[Row]:
    """When items changed, of those that did."""
    seen = (poll.outcome.observation for poll in polls)
    return [(each.time_s, each.item_id) for each in seen if each is not None and each.changed]


def _failures(polls: Sequence[Poll]) -> list[Row]:
    """Failures in a row, of the items that have or had some."""
    outcomes = (poll.outcome for poll in polls)
    return [(each.failures, each.lease.item_id) for each in outcomes if each.failures or each.lease.failures]


def _event(poll: Poll) -> Row:
    outcome, lease = poll.outcome, poll.outcome.lease
    times = (outcome.time_s, outcome.time_s)
    return (lease.item_id, lease.key, poll.known.source_id, outcome.event, poll.version, *times)
