"""Commits the outcomes of a group of polls to PostgreSQL, with a dozen statements however large the group.

    lock the items ─▶ separate lost leases ─▶ copies ─▶ states and observations
                   ─▶ audits, events, notices, leases ─▶ tally, sizes, values, ledger

Contents are hashed and compressed before the transaction begins, so that others may write in the meantime.
Everybody locks items, contents and counts in the same order; what many workers write comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afresh.stores.postgres.binary_arrays import column_arrays, to_array
from afresh.stores.postgres.contents import SizeChange, drop_contents, keep_contents, keep_size_change
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.reconnection import Connection, fetch_pipelined, fetch_rows
from afresh.stores.rows import Row, text_from_mapping
from afresh.stores.sql.commit import (
    AcceptedPoll,
    CompressedCopy,
    LockedItem,
    compress_copies,
    event_rows,
    new_copies,
    observations_of,
    recent_runs,
    separate_refused,
    status_changes,
    sum_spending,
)
from afresh.stores.sql.ledger import add_ledger_rows, ledger_rows
from afresh.stores.sql.observations import add_audits, append_to_recent_runs
from afresh.stores.sql.state import set_values
from afresh.stores.sql.statements import load_statements
from afresh.stores.store import Retention
from afresh.values.outcome import Outcome, Refusal
from afresh.values.storable_text import replace_unstorable

_SQL = load_statements(__package__, "commit")
_STATE = (
    *("ids", "due", "statuses", "failures", "problems", "changed", "polled", "changed_s"),
    *("versions", "beliefs", "validators", "recent"),
)
_EVENT = ("ids", "keys", "sources", "kinds", "versions", "times")


def commit(
    database: PostgresDatabase,
    outcomes: Sequence[Outcome],
    values: Mapping[str, bytes | None],
    retention: Retention,
) -> list[Refusal]:
    """Commit everything or nothing, and return the outcomes that were refused."""
    copies = compress_copies(outcomes)

    def work(connection: Connection) -> list[Refusal]:
        polls, refused = separate_refused(outcomes, copies, _lock(connection, outcomes))
        sizes = SizeChange()
        _keep_copies(database, connection, polls, retention, sizes)
        spending = ledger_rows(database, connection, sum_spending(outcomes))
        # No answer of the server is needed from here on: the rest is sent at once.
        with connection.pipeline():
            if polls:
                _keep_states(database, connection, polls, retention)
            keep_size_change(connection, sizes)
            set_values(database, connection, values)
            add_ledger_rows(database, connection, spending)
        return refused

    return database.write(work)


def _keep_states(
    database: PostgresDatabase, connection: Connection, polls: Sequence[AcceptedPoll], retention: Retention
) -> None:
    runs = append_to_recent_runs(database, connection, recent_runs(polls), retention)
    states = [_state_row(poll, run) for poll, run in zip(polls, runs, strict=True)]
    database.run_many(connection, _SQL["keep_states"], _STATE, states)
    add_audits(database, connection, observations_of(polls), retention)
    database.run_many(connection, _SQL["queue_events"], _EVENT, event_rows(polls))
    fetch_rows(connection, _SQL["end_leases"], {"ids": to_array([poll.item_id for poll in polls])})
    database.add_to_tally(connection, status_changes(polls))


def _lock(connection: Connection, outcomes: Sequence[Outcome]) -> dict[int, LockedItem]:
    """Lock the items of these outcomes, and return them as they are."""
    if not outcomes:
        return {}
    given = {"ids": to_array([outcome.lease.item_id for outcome in outcomes])}
    states, leases = fetch_pipelined(connection, (_SQL["lock"], given), (_SQL["tokens"], given))
    tokens: dict[int, int] = dict(leases)
    return {item_id: LockedItem(tokens.get(item_id), *state) for item_id, *state in states}


def _keep_copies(
    database: PostgresDatabase,
    connection: Connection,
    polls: Sequence[AcceptedPoll],
    retention: Retention,
    sizes: SizeChange,
) -> None:
    """Make new copies versions; if the bytes are the newest already, only their names may differ."""
    new = new_copies(database, connection, polls)
    if not new:
        return
    newest = [(poll.item_id, poll.before.version) for poll, _, _ in new]
    found = fetch_rows(connection, _SQL["hashes"], column_arrays(("ids", "numbers"), newest))
    kept = {(item_id, digest) for item_id, digest in found}
    same = [row for row in new if (row[0].item_id, row[1].hash) in kept]
    other = [row for row in new if (row[0].item_id, row[1].hash) not in kept]
    table = [(poll.item_id, poll.version, media, copy.copy.normal_hash) for poll, copy, media in same]
    database.run_many(connection, _SQL["same_copies"], ("ids", "numbers", "media", "hashes"), table)
    if other:
        _add_versions(connection, other, retention, sizes)


def _add_versions(
    connection: Connection,
    new: Sequence[tuple[AcceptedPoll, CompressedCopy, int]],
    retention: Retention,
    sizes: SizeChange,
) -> None:
    contents = keep_contents(connection, [copy for _, copy, _ in new], sizes)
    table = []
    for poll, copy, media_type_id in new:
        poll.version = poll.before.version + 1
        place = (poll.item_id, poll.version, contents[copy.hash], poll.outcome.time_s)
        table.append((*place, media_type_id, copy.copy.normal_hash))
    given = column_arrays(("ids", "numbers", "contents", "times", "media", "hashes"), table)
    fetch_rows(connection, _SQL["add_versions"], given)
    dropped = fetch_rows(connection, _SQL["drop_versions"], given | {"kept": retention.versions})
    sizes.versions += len(table) - len(dropped)
    drop_contents(connection, [content_id for (content_id,) in dropped], sizes)


def _state_row(poll: AcceptedPoll, recent: bytes | None) -> Row:
    outcome, seen = poll.outcome, poll.outcome.observation
    has_changed = seen is not None and seen.changed
    return (
        poll.item_id,
        outcome.due_s,
        poll.status,
        outcome.failures,
        replace_unstorable(outcome.problem),
        int(has_changed),
        None if seen is None else seen.time_s,
        seen.time_s if seen is not None and has_changed else None,
        poll.version,
        outcome.belief,
        None if outcome.validators is None else text_from_mapping(outcome.validators),
        recent,
    )
