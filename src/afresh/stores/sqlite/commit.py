"""Commits the outcomes of many polls to SQLite, in one transaction.

    separate lost leases ─▶ copies ─▶ states and observations ─▶ tally, audits, notices,
                                                                 leases, ledger, values, feed

Contents are hashed and compressed before the transaction begins, so that other workers can write meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from afresh.stores.rows import Row, text_from_mapping
from afresh.stores.sql import commit_changes as changes
from afresh.stores.sql.dialect import load_statements
from afresh.stores.sql.store_parts import SqlStore
from afresh.stores.store import ANSWERS_KEPT_S
from afresh.values.outcome import Outcome, Refusal
from afresh.values.storable_text import replace_unstorable

_SQL = load_statements(__package__, "commit")
_CONTENTS = load_statements(__package__, "contents")


def commit(
    store: SqlStore[sqlite3.Connection], outcomes: Sequence[Outcome], values: Mapping[str, bytes | None]
) -> list[Refusal]:
    """Commit the outcomes and set the named ``values`` in one transaction; see ``Store.commit``."""
    database, copies = store.database, changes.compress_copies(outcomes, store.objects)

    def work(connection: sqlite3.Connection) -> list[Refusal]:
        ids = database.as_list([outcome.lease.item_id for outcome in outcomes])
        found = connection.execute(_SQL["known"], {"ids": ids}).fetchall()
        locked = {item_id: changes.LockedItem(*state) for item_id, *state in found}
        polls, refused = changes.separate_refused(outcomes, copies, locked)
        changes.set_previous_sizes(database, connection, polls)
        for poll, copy, media_type_id in changes.new_copies(database, connection, polls):
            _save_copy(connection, poll, copy, media_type_id, store.retention.versions)
        store.refuse_deleted(connection, [copy.hash for copy in copies if copy])
        runs = store.observations.append(connection, polls)
        states = [_state_row(poll, run) for poll, run in zip(polls, runs, strict=True)]
        connection.executemany(_SQL["keep_state"], states)
        observations = changes.observations_of(polls)
        # Indexed columns are written only for the items that need it; see commit.sql.
        changed = [(seen.time_s, seen.item_id) for seen in observations if seen.changed]
        connection.executemany(_SQL["keep_changed"], changed)
        failures = [(each.outcome.failures, each.item_id) for each in polls if _has_failures(each.outcome)]
        connection.executemany(_SQL["keep_failures"], failures)
        database.add_to_tally(connection, changes.status_changes(polls))
        store.links.keep(connection, polls)
        store.observations.add_audits(connection, observations)
        if connection.execute(_SQL["any_notice"]).fetchone():
            answered = [(poll.item_id, poll.outcome.lease.leased_s) for poll in polls]
            connection.executemany(_SQL["answer_notice"], answered)
        connection.executemany(_SQL["end_lease"], [(poll.item_id,) for poll in polls])
        if answers := changes.answer_rows(polls):
            connection.executemany(_SQL["keep_answer"], answers)
            connection.execute(_SQL["drop_answers"], (max(row[2] for row in answers) - ANSWERS_KEPT_S,))
        spending = store.ledger.as_rows(connection, changes.sum_spending(outcomes))
        store.ledger.add_rows(connection, spending)
        store.state.set_in_transaction(connection, values)
        store.feed.append(connection, changes.feed_rows(polls))
        return refused

    return database.write(work)


def _save_copy(
    connection: sqlite3.Connection,
    poll: changes.AcceptedPoll,
    new: changes.CompressedCopy,
    media_type_id: int,
    versions_kept: int,
) -> None:
    newest = poll.before.version
    if connection.execute(_SQL["hash_of"], (poll.item_id, newest)).fetchone() == (new.hash,):
        # The bytes are the same, but the normalised hash or the media type may be new.
        connection.execute(_SQL["same_copy"], (new.copy.normal_hash, media_type_id, poll.item_id, newest))
        return
    content_id = save_content(connection, new)
    poll.version = newest + 1
    place = (poll.item_id, poll.version, content_id, poll.outcome.time_s)
    row = (*place, media_type_id, new.copy.normal_hash, new.copy.change_size)
    connection.execute(_SQL["add_version"], row)
    if poll.version > versions_kept:
        oldest = (poll.item_id, poll.version - versions_kept)
        dropped = connection.execute(_SQL["drop_versions"], oldest).fetchall()
        drop_contents(connection, [content_id for (content_id,) in dropped])


def _state_row(poll: changes.AcceptedPoll, recent: bytes | None) -> Row:
    outcome, seen = poll.outcome, poll.outcome.observation
    return (
        outcome.due_s,
        poll.status,
        replace_unstorable(outcome.problem) if outcome.problem else "",
        seen is not None and seen.changed,
        None if seen is None else seen.time_s,
        poll.version,
        outcome.belief,
        _validators(outcome),
        recent,
        poll.item_id,
    )


def _validators(outcome: Outcome) -> str | None:
    """Return the validators as JSON, or None if those in the store stay."""
    new = outcome.validators
    # Only the holder of a lease changes validators, so equal ones need not be written. Empty ones are always
    # written, because a lease that was not read from the store has none.
    return None if new is None or (new and new == outcome.lease.validators) else text_from_mapping(new)


def _has_failures(outcome: Outcome) -> bool:
    return bool(outcome.failures or outcome.lease.failures)


def save_content(connection: sqlite3.Connection, new: changes.CompressedCopy) -> int:
    """Count one more use of a content, write its bytes if they are not stored yet, and return its id."""
    row = connection.execute(_CONTENTS["keep"], (new.hash, len(new.copy.content))).fetchall()
    ((content_id, refs),) = row
    if refs == 1:
        connection.execute(_CONTENTS["keep_payload"], (content_id, new.data))
    return int(content_id)


def drop_contents(connection: sqlite3.Connection, content_ids: Iterable[int]) -> None:
    """Count one use less per entry of ``content_ids``, and delete contents that no version uses any more."""
    for content_id, uses in Counter(content_ids).items():
        connection.execute(_CONTENTS["drop"], (uses, content_id))
        connection.execute(_CONTENTS["collect"], (content_id,))
