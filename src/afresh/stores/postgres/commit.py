"""Commits the outcomes of a group of polls to PostgreSQL, with a dozen statements however large the group.

    lock the items ─▶ separate lost leases ─▶ copies ─▶ states and observations
                   ─▶ audits, events, notices, leases ─▶ tally, sizes, values, ledger

Contents are hashed and compressed before the transaction begins, so that others may write in the meantime.
Everybody locks items, contents and counts in the same order; what many workers write comes last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from afresh.stores.postgres.binary_arrays import column_arrays, to_array
from afresh.stores.postgres.connection import Connection, fetch_pipelined, fetch_rows
from afresh.stores.rows import Row, text_from_mapping
from afresh.stores.sql import commit_changes as changes
from afresh.stores.sql.dialect import load_statements
from afresh.stores.sql.groups import SqlStore
from afresh.values.outcome import Outcome, Refusal
from afresh.values.storable_text import replace_unstorable

_CONTENTS = load_statements(__package__, "contents")
_SQL = load_statements(__package__, "commit")
_STATE = (
    *("ids", "due", "statuses", "failures", "problems", "changed", "polled", "changed_s"),
    *("versions", "beliefs", "validators", "recent"),
)
_EVENT = ("ids", "keys", "sources", "kinds", "versions", "times")


@dataclass(slots=True)
class SizeChange:
    """How the sizes of a store change in one transaction."""

    versions: int = 0
    contents: int = 0
    content_bytes: int = 0
    stored_bytes: int = 0


def keep_contents(
    connection: Connection, copies: Sequence[changes.CompressedCopy], sizes: SizeChange
) -> dict[bytes, int]:
    """Count one more use per copy, write the bytes that nobody has yet, and return the contents' ids by
    hash."""
    if not copies:
        return {}
    uses, by_hash = Counter(copy.hash for copy in copies), {copy.hash: copy for copy in copies}
    # In one order for all, so that no two workers wait for each other in a circle.
    wanted = [(digest, len(by_hash[digest].copy.content), uses[digest]) for digest in sorted(uses)]
    kept = fetch_rows(connection, _CONTENTS["keep"], column_arrays(("hashes", "sizes", "uses"), wanted))
    new = [(content_id, by_hash[digest]) for content_id, digest, refs in kept if refs == uses[digest]]
    if new:
        payloads = [(content_id, copy.data) for content_id, copy in new]
        fetch_rows(connection, _CONTENTS["keep_payloads"], column_arrays(("ids", "data"), payloads))
    sizes.contents += len(new)
    sizes.content_bytes += sum(len(copy.copy.content) for _, copy in new)
    sizes.stored_bytes += sum(len(copy.data) for _, copy in new)
    return {digest: content_id for content_id, digest, _ in kept}


def drop_contents(connection: Connection, content_ids: Iterable[int], sizes: SizeChange) -> None:
    """Count one use less of each of these contents, and delete those that nobody uses."""
    uses = sorted(Counter(content_ids).items())
    if not uses:
        return
    given = column_arrays(("ids", "uses"), uses)
    fetch_rows(connection, _CONTENTS["lock"], given)
    fetch_rows(connection, _CONTENTS["drop"], given)
    gone = fetch_rows(connection, _CONTENTS["collect"], given)
    if gone:
        payloads = fetch_rows(connection, _CONTENTS["collect_payloads"], {"ids": [row[0] for row in gone]})
        sizes.contents -= len(gone)
        sizes.content_bytes -= sum(size for _, size in gone)
        sizes.stored_bytes -= sum(size for (size,) in payloads)


def keep_size_change(connection: Connection, sizes: SizeChange) -> None:
    """Add the change to the sizes that the store keeps."""
    if sizes != SizeChange():
        fetch_rows(connection, _CONTENTS["resize"], asdict(sizes))


def commit(
    store: SqlStore[Connection], outcomes: Sequence[Outcome], values: Mapping[str, bytes | None]
) -> list[Refusal]:
    """Commit everything or nothing, and return the outcomes that were refused."""
    copies = changes.compress_copies(outcomes)

    def work(connection: Connection) -> list[Refusal]:
        polls, refused = changes.separate_refused(outcomes, copies, _lock(connection, outcomes))
        sizes = SizeChange()
        _keep_copies(store, connection, polls, sizes)
        spending = store.ledger.as_rows(connection, changes.sum_spending(outcomes))
        # No answer of the server is needed from here on: the rest is sent at once.
        with connection.pipeline():
            if polls:
                _keep_states(store, connection, polls)
            keep_size_change(connection, sizes)
            store.state.set_inside(connection, values)
            store.ledger.add_rows(connection, spending)
        return refused

    return store.database.write(work)


def _keep_states(
    store: SqlStore[Connection], connection: Connection, polls: Sequence[changes.AcceptedPoll]
) -> None:
    database = store.database
    runs = store.observations.append(connection, polls)
    states = [_state_row(poll, run) for poll, run in zip(polls, runs, strict=True)]
    database.run_many(connection, _SQL["keep_states"], _STATE, states)
    store.observations.add_audits(connection, changes.observations_of(polls))
    database.run_many(connection, _SQL["queue_events"], _EVENT, changes.event_rows(polls))
    fetch_rows(connection, _SQL["end_leases"], {"ids": to_array([poll.item_id for poll in polls])})
    database.add_to_tally(connection, changes.status_changes(polls))


def _lock(connection: Connection, outcomes: Sequence[Outcome]) -> dict[int, changes.LockedItem]:
    """Lock the items of these outcomes, and return them as they are."""
    if not outcomes:
        return {}
    given = {"ids": to_array([outcome.lease.item_id for outcome in outcomes])}
    states, leases = fetch_pipelined(connection, (_SQL["lock"], given), (_SQL["tokens"], given))
    tokens: dict[int, int] = dict(leases)
    return {item_id: changes.LockedItem(tokens.get(item_id), *state) for item_id, *state in states}


def _keep_copies(
    store: SqlStore[Connection],
    connection: Connection,
    polls: Sequence[changes.AcceptedPoll],
    sizes: SizeChange,
) -> None:
    """Make new copies versions; if the bytes are the newest already, only their names may differ."""
    new = changes.new_copies(store.database, connection, polls)
    if not new:
        return
    newest = [(poll.item_id, poll.before.version) for poll, _, _ in new]
    found = fetch_rows(connection, _SQL["hashes"], column_arrays(("ids", "numbers"), newest))
    kept = {(item_id, digest) for item_id, digest in found}
    same = [row for row in new if (row[0].item_id, row[1].hash) in kept]
    other = [row for row in new if (row[0].item_id, row[1].hash) not in kept]
    table = [(poll.item_id, poll.version, media, copy.copy.normal_hash) for poll, copy, media in same]
    store.database.run_many(connection, _SQL["same_copies"], ("ids", "numbers", "media", "hashes"), table)
    if other:
        _add_versions(connection, other, store.retention.versions, sizes)


def _add_versions(
    connection: Connection,
    new: Sequence[tuple[changes.AcceptedPoll, changes.CompressedCopy, int]],
    versions_kept: int,
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
    dropped = fetch_rows(connection, _SQL["drop_versions"], given | {"kept": versions_kept})
    sizes.versions += len(table) - len(dropped)
    drop_contents(connection, [content_id for (content_id,) in dropped], sizes)


def _state_row(poll: changes.AcceptedPoll, recent: bytes | None) -> Row:
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
