"""Commits the outcomes of polls to PostgreSQL, with about a dozen statements for any number of polls.

    lock the items ─▶ separate lost leases ─▶ copies ─▶ states and observations
                   ─▶ audits, notices, leases ─▶ tally, sizes, values, ledger, feed

Contents are hashed and compressed before the transaction begins, so that other workers can write meanwhile.
All workers lock items, contents and counts in the same order, so that they cannot deadlock. Database rows
that all workers write are written last, so that they are locked for a short time.
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
from afresh.stores.sql.store_parts import SqlStore
from afresh.stores.store import ANSWERS_KEPT_S
from afresh.values.outcome import Outcome, Refusal
from afresh.values.storable_text import replace_unstorable

_CONTENTS = load_statements(__package__, "contents")
_SQL = load_statements(__package__, "commit")
_STATE = (
    *("ids", "due", "statuses", "failures", "problems", "changed", "polled", "changed_s"),
    *("versions", "beliefs", "validators", "recent"),
)
_ANSWER = ("ids", "tokens", "times", "texts")


@dataclass(slots=True)
class SizeChange:
    """By how much one transaction changes the numbers of versions, contents and bytes in a store."""

    versions: int = 0
    contents: int = 0
    content_bytes: int = 0
    stored_bytes: int = 0


def save_contents(
    connection: Connection, copies: Sequence[changes.CompressedCopy], sizes: SizeChange
) -> dict[bytes, int]:
    """Count one more use of each copy's content, write the contents that are not stored yet, and return a
    dictionary from hash to content id. ``sizes`` is updated."""
    if not copies:
        return {}
    uses, by_hash = Counter(copy.hash for copy in copies), {copy.hash: copy for copy in copies}
    # All workers lock contents in the order of their hashes, so that two workers cannot deadlock.
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
    """Count one use less per entry of ``content_ids``, and delete contents that no version uses any more.
    ``sizes`` is updated."""
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


def save_size_change(connection: Connection, sizes: SizeChange) -> None:
    """Add these changes to the sizes that the store saves for ``Upkeep.stats``."""
    if sizes != SizeChange():
        fetch_rows(connection, _CONTENTS["resize"], asdict(sizes))


def commit(
    store: SqlStore[Connection], outcomes: Sequence[Outcome], values: Mapping[str, bytes | None]
) -> list[Refusal]:
    """Commit the outcomes and set the named ``values`` in one transaction; see ``Store.commit``."""
    copies = changes.compress_copies(outcomes, store.objects)

    def work(connection: Connection) -> list[Refusal]:
        polls, refused = changes.separate_refused(outcomes, copies, _lock(connection, outcomes))
        sizes = SizeChange()
        changes.set_previous_sizes(store.database, connection, polls)
        _save_copies(store, connection, polls, sizes)
        store.refuse_deleted(connection, [copy.hash for copy in copies if copy])
        spending = store.ledger.as_rows(connection, changes.sum_spending(outcomes))
        # The remaining statements need no answer of the server, so they are sent in one round trip.
        with connection.pipeline():
            if polls:
                _save_states(store, connection, polls)
            save_size_change(connection, sizes)
            store.state.set_in_transaction(connection, values)
            store.ledger.add_rows(connection, spending)
            store.feed.append(connection, changes.feed_rows(polls))
        return refused

    return store.database.write(work)


def _save_states(
    store: SqlStore[Connection], connection: Connection, polls: Sequence[changes.AcceptedPoll]
) -> None:
    database = store.database
    runs = store.observations.append(connection, polls)
    states = [_state_row(poll, run) for poll, run in zip(polls, runs, strict=True)]
    database.run_many(connection, _SQL["keep_states"], _STATE, states)
    store.links.keep(connection, polls)
    store.observations.add_audits(connection, changes.observations_of(polls))
    fetch_rows(connection, _SQL["end_leases"], {"ids": to_array([poll.item_id for poll in polls])})
    if answers := changes.answer_rows(polls):
        database.run_many(connection, _SQL["keep_answers"], _ANSWER, answers)
        before_s = max(row[2] for row in answers) - ANSWERS_KEPT_S
        fetch_rows(connection, _SQL["drop_answers"], {"before_s": before_s})
    database.add_to_tally(connection, changes.status_changes(polls))


def _lock(connection: Connection, outcomes: Sequence[Outcome]) -> dict[int, changes.LockedItem]:
    """Lock the items of these outcomes, and return their current states by item id."""
    if not outcomes:
        return {}
    given = {"ids": to_array([outcome.lease.item_id for outcome in outcomes])}
    states, leases = fetch_pipelined(connection, (_SQL["lock"], given), (_SQL["tokens"], given))
    tokens: dict[int, int] = dict(leases)
    return {item_id: changes.LockedItem(tokens.get(item_id), *state) for item_id, *state in states}


def _save_copies(
    store: SqlStore[Connection],
    connection: Connection,
    polls: Sequence[changes.AcceptedPoll],
    sizes: SizeChange,
) -> None:
    """Save new copies as versions. If a copy has the same bytes as the newest version, only update that
    version's normalised hash and media type."""
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
    contents = save_contents(connection, [copy for _, copy, _ in new], sizes)
    table = []
    for poll, copy, media_type_id in new:
        poll.version = poll.before.version + 1
        place = (poll.item_id, poll.version, contents[copy.hash], poll.outcome.time_s)
        table.append((*place, media_type_id, copy.copy.normal_hash, copy.copy.change_size))
    columns = ("ids", "numbers", "contents", "times", "media", "hashes", "sizes")
    given = column_arrays(columns, table)
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
