"""What a group of polls leaves behind, in one transaction of a dozen statements however large the group.

    lock the items ─▶ sort out lost leases ─▶ copies ─▶ states and observations
                   ─▶ audits, events, notices, leases ─▶ tally, sizes, values, ledger

Contents are hashed and compressed before the transaction begins: others may write meanwhile. Items, contents
and counts are locked in one order by everybody, what many write comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afresh.stores.polls import Known, Packed, Poll, moves, pack, sort_out, spends
from afresh.stores.postgres.arrays import array, arrays
from afresh.stores.postgres.contents import Growth, drop_contents, keep_contents, keep_growth
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.ledger import add_ledger_rows, ledger_rows
from afresh.stores.postgres.lines import Connection, rows, together
from afresh.stores.postgres.names import name_ids
from afresh.stores.postgres.observations import add_audits, append_recent
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.postgres.state import set_values
from afresh.stores.postgres.tally import add_to_tally
from afresh.stores.rows import Row, text_from_mapping
from afresh.stores.store import Retention
from afresh.stores.texts import storable
from afresh.values.outcome import Outcome, Refusal

_SQL = load_blocks("commit.sql")
_STATE = (
    "ids",
    "due",
    "statuses",
    "failures",
    "problems",
    "changed",
    "polled",
    "changed_s",
    "versions",
    "beliefs",
    "validators",
    "recent",
)


def commit(
    database: PostgresDatabase,
    outcomes: Sequence[Outcome],
    values: Mapping[str, bytes | None],
    retention: Retention,
) -> list[Refusal]:
    """Everything or nothing; the outcomes refused."""
    copies = pack(outcomes)

    def work(connection: Connection) -> list[Refusal]:
        polls, refused = sort_out(outcomes, copies, _known(connection, outcomes))
        growth = Growth()
        _keep_copies(connection, polls, retention, growth)
        spent = ledger_rows(connection, spends(outcomes))
        # Nothing more has to be heard from the server: what is left goes there at once.
        with connection.pipeline():
            if polls:
                _keep(connection, polls, retention)
            keep_growth(connection, growth)
            set_values(connection, values)
            add_ledger_rows(connection, spent)
        return refused

    return database.write(work)


def _keep(connection: Connection, polls: Sequence[Poll], retention: Retention) -> None:
    recent = append_recent(
        connection, [(poll.known.recent, poll.outcome.observation) for poll in polls], retention
    )
    states = [_state(poll, run) for poll, run in zip(polls, recent, strict=True)]
    rows(connection, _SQL["keep_states"], arrays(_STATE, states))
    seen = [poll.outcome.observation for poll in polls if poll.outcome.observation is not None]
    add_audits(connection, seen, retention)
    events = [_event(poll) for poll in polls if poll.outcome.event]
    if events:
        names = ("ids", "keys", "sources", "kinds", "versions", "times")
        rows(connection, _SQL["queue_events"], arrays(names, events))
    rows(connection, _SQL["end_leases"], {"ids": array([poll.outcome.lease.item_id for poll in polls])})
    add_to_tally(connection, moves(polls))


def _known(connection: Connection, outcomes: Sequence[Outcome]) -> dict[int, Known]:
    if not outcomes:
        return {}
    given = {"ids": array([outcome.lease.item_id for outcome in outcomes])}
    locked, lent = together(connection, (_SQL["lock"], given), (_SQL["tokens"], given))
    tokens: dict[int, int] = dict(lent)
    return {item_id: Known(tokens.get(item_id), *state) for item_id, *state in locked}


def _keep_copies(connection: Connection, polls: Sequence[Poll], retention: Retention, growth: Growth) -> None:
    """New copies become versions; bytes that are the newest already may be named in another way now."""
    new = [(poll, poll.packed) for poll in polls if poll.packed is not None]
    if not new:
        return
    media = name_ids(connection, {storable(packed.copy.media_type) for _, packed in new})
    newest = [(poll.outcome.lease.item_id, poll.known.version) for poll, _ in new]
    found = rows(connection, _SQL["hashes"], arrays(("ids", "numbers"), newest))
    kept = {(item_id, address) for item_id, address in found}
    named = [(poll, packed, media[storable(packed.copy.media_type)]) for poll, packed in new]
    same = [row for row in named if (row[0].outcome.lease.item_id, row[1].address) in kept]
    other = [row for row in named if (row[0].outcome.lease.item_id, row[1].address) not in kept]
    if same:
        table = [(p.outcome.lease.item_id, p.version, kind, c.copy.normal_hash) for p, c, kind in same]
        rows(connection, _SQL["same_copies"], arrays(("ids", "numbers", "media", "hashes"), table))
    if other:
        _add_versions(connection, other, retention, growth)


def _add_versions(
    connection: Connection, new: Sequence[tuple[Poll, Packed, int]], retention: Retention, growth: Growth
) -> None:
    contents = keep_contents(connection, [packed for _, packed, _ in new], growth)
    table = []
    for poll, packed, media_type_id in new:
        poll.version = poll.known.version + 1
        place = (poll.outcome.lease.item_id, poll.version, contents[packed.address], poll.outcome.time_s)
        table.append((*place, media_type_id, packed.copy.normal_hash))
    given = arrays(("ids", "numbers", "contents", "times", "media", "hashes"), table)
    rows(connection, _SQL["add_versions"], given)
    old = rows(connection, _SQL["drop_versions"], given | {"kept": retention.versions})
    growth.versions += len(table) - len(old)
    drop_contents(connection, [content_id for (content_id,) in old], growth)


def _state(poll: Poll, recent: bytes | None) -> Row:
    outcome, seen = poll.outcome, poll.outcome.observation
    changed = seen is not None and seen.changed
    return (
        outcome.lease.item_id,
        outcome.due_s,
        poll.status,
        outcome.failures,
        storable(outcome.problem),
        int(changed),
        None if seen is None else seen.time_s,
        seen.time_s if seen is not None and changed else None,
        poll.version,
        outcome.belief,
        None if outcome.validators is None else text_from_mapping(outcome.validators),
        recent,
    )


def _event(poll: Poll) -> Row:
    outcome, lease = poll.outcome, poll.outcome.lease
    return (lease.item_id, lease.key, poll.known.source_id, outcome.event, poll.version, outcome.time_s)
