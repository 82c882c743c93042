"""The search source: its records are refreshed by keyword queries, and by look-ups by key.

Each request is the one with the highest value (``planner``). The value of a record grows with the content lag
that it is expected to have accumulated (``record_tracker``). A page of results refreshes all records of the
relation that are on it. A record counts as missing only if it was requested itself and not found: by its key
or, without look-ups, by its own query (``own_queries``)."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from afresh.sources.capabilities import Batch, Capabilities, GroupBackoff
from afresh.sources.change_detection import compare_content
from afresh.sources.context import SourceContext
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.search.planner import PlannedRequest, Planner
from afresh.sources.search.record_tracker import RecordTracker, make_measures
from afresh.sources.search.relation import LocalRelation, display_place, is_postgres, read_relation
from afresh.sources.search.saved_records import SearchState, read_state
from afresh.sources.search.search_server import (
    FileSearchServer,
    SearchServer,
    file_stamp,
    make_server,
    sample_index,
)
from afresh.sources.search.settings import SearchSettings
from afresh.sources.source import SingleGroupSource
from afresh.sources.sql.canonical_json import row_json
from afresh.sources.sql.connections import KeyedRecord
from afresh.sources.web_api.cost_sharing import CostSharing
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.sources.web_api.server_backoff import ServerBackoff
from afresh.values.arrays import Float64s
from afresh.values.errors import AfreshError, InputError, UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

_MEDIA_TYPE = "application/json"
_MOST_PASSES = 8  # how often another request of higher value may be chosen instead of the lead
_BUSY_S = 2.0  # a record that is leased elsewhere, or new to the engine, is not chosen for this time
_ABSENT_S = 60.0  # a record that was not found is not chosen for this time, which doubles each time
_LONGEST_ABSENT_S = 86400.0


@dataclass(frozen=True, slots=True, eq=False)
class _BatchRequest:
    """The request of a batch. ``planned`` is None if no request is needed. The planned request contains rows
    and keyword numbers of ``relation``."""

    planned: PlannedRequest | None
    relation: LocalRelation


class SearchSource(SingleGroupSource):
    """A ``BatchSource`` and ``StatefulSource`` for the records of a relation, which form one group."""

    def __init__(
        self, settings: SearchSettings, context: SourceContext, server: SearchServer | None = None
    ) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        self._measures = make_measures(settings)
        self._stamp = file_stamp(settings.relation)
        self._relation = _read_relation(settings, context)
        self._server = server or make_server(settings, context, self._relation)
        self._tracker = RecordTracker(self._relation, self._measures, self._relation.rates)
        self._planner = self._make_planner(self._relation)
        self._lock = asyncio.Lock()
        self._unrequested: dict[str, KeyedRecord] = {}  # records found on a page without a lease
        self._removed: set[str] = set()  # keys no longer in the relation, not reported yet
        self._passes: Counter[str] = Counter()
        self._absences: Counter[str] = Counter()
        self._backoff = ServerBackoff(settings, context.clock)
        self._costs = CostSharing()
        self._look_ups = 0
        self._adopted: dict[str, dict[str, str]] = {}  # texts by column, of records that the relation lacks
        self._has_adopted = False  # since the relation was read
        self.capabilities = Capabilities(batches=self, state=self)

    def ready_s(self, group: str, now_s: float) -> float:
        """Return when windows and back-off allow a request (Unix seconds); infinite while one is running."""
        del group
        if self._lock.locked():
            return math.inf
        return self._windows.next_opening_s(max(now_s + self._server.wait_s(), self._backoff.until_s))

    # State that is saved.

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        return (*self._backoff.save(), *self._server.backoffs())

    def save_state(self) -> bytes:
        """Return when each record was seen, how fast it changes, and the results of each query, as bytes."""
        return self._state().pack()

    def _state(self) -> SearchState:
        keys, planner = self._relation.keys, self._planner
        return SearchState(
            tuple(self._tracker.save()),
            tuple(planner.save(keys, self._adopted)),
            tuple(planner.scales()),
            self._look_ups,
            len(keys),
            (self._settings.page_size, self._server.page_size),
            (self._settings.keys_at_once, planner.keys_at_once),
            self._adopted,
        )

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        self._server.load_backoffs(self._backoff.load(backoffs))
        self._load(read_state(state))

    def _load(self, known: SearchState) -> None:
        self._removed.update(self._tracker.load(known.records))
        asked, learned = known.page_sizes
        if asked == self._settings.page_size:  # with another setting the server may give other pages
            self._server.load_page_size(learned)
            self._planner.set_page_size(self._server.page_size)
        asked, learned = known.bulk_sizes
        if asked == self._settings.keys_at_once and learned > 0:
            self._planner.keys_at_once = min(self._planner.keys_at_once, learned)
        self._planner.load(known.queries, self._relation.rows)
        self._planner.mark_seen(np.flatnonzero(~np.isnan(self._tracker.seen_s)))
        self._look_ups = max(self._look_ups, known.look_ups)
        self._adopt(known.adopted if self._settings.adopt else {})

    # Choosing and sending requests.

    def keys(self) -> Sequence[str]:
        return self._relation.keys

    async def choose(self, lead: str, weights: Float64s | None = None) -> Batch:
        """Implement ``BatchSource.choose``: return the request with the highest sum of poll values. If
        earlier pages contained records without a lease, or keys were removed from the relation, the batch
        consists of these, because they need no request."""
        if weights is not None:
            self._tracker.set_weights(weights)
        if self._unrequested or self._removed:
            return Batch((*self._unrequested, *self._removed), _BatchRequest(None, self._relation))
        if self._planner.is_outdated:
            await asyncio.to_thread(self._planner.search_candidates)
        now_s, row = self._context.clock.now_s(), self._relation.rows.get(lead)
        if row is None:  # it is no longer in the relation, which its poll reports without a request
            return Batch((lead,))
        values = self._tracker.values(now_s)
        must = None
        if self._tracker.not_before_s[row] <= now_s:
            self._passes[lead] += 1
            if self._passes[lead] > _MOST_PASSES or not values.any():
                must = row
                # The engine offers this record again and again, so its value must be above 0.
                values[row] = max(values[row], float(values.max()), 1.0)
        planned = self._planner.best(values, must)
        if planned is None:
            return Batch((lead,))
        rows = self._planner.expected_rows(planned, values).tolist()
        keys = tuple(self._relation.keys[row] for row in rows)
        return Batch(keys, _BatchRequest(planned, self._relation))

    async def poll_batch(self, batch: Batch, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Implement ``BatchSource.poll_batch``. A batch planned for an older relation is not sent."""
        request = batch.request if isinstance(batch.request, _BatchRequest) else None
        if request is not None and request.relation is not self._relation:
            request = None
        if request is not None:
            until_s, leased = self._context.clock.now_s() + _BUSY_S, {lease.key for lease in leases}
            for key in batch.keys:
                self._removed.discard(key)
                if key not in leased and key in self._relation.rows:
                    self._tracker.put_off(self._relation.rows[key], until_s)
                    self._unrequested.pop(key, None)
        if not leases:
            return []
        if request is not None and request.planned is not None:
            return await self._ask(request.planned, leases)
        return await self._without_request(leases)

    async def _without_request(self, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Return results for records found earlier and for removed keys. Request at most one other record."""
        found: list[Fetched | None] = []
        free = True
        for lease in leases:
            known = lease.key in self._relation.rows
            if lease.key in self._unrequested and known:
                found.append(self._compare(lease, [self._unrequested.pop(lease.key)]))
            elif free or not known:
                free = free and not known
                found.append(await self.poll(lease))
            else:
                found.append(None)
        return found

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        del conditional
        row = self._relation.rows.get(lease.key)
        if row is None:
            return Fetched("gone", problem="the relation has no record with this key")
        can_look_up = self._settings.finds_keys
        planned = PlannedRequest(rows=(row,)) if can_look_up else self._planner.own_query(row)
        if planned is None:
            problem = "the record has no keywords, and look_up is not set: it cannot be asked for"
            return Fetched("refused", problem=problem)
        found = (await self._ask(planned, [lease], alone=True))[0]
        assert found is not None
        return found

    async def listings(self) -> AsyncIterator[Listing]:
        """List the keys of the relation. A file is read again only if it was written, a database always."""
        place, problem = self._settings.relation, ""
        if is_postgres(place) or file_stamp(place) != self._stamp or self._has_adopted:
            try:
                await self._reload_relation()
            except AfreshError as error:
                problem = f"{str(error).rstrip('.')}; the records read before are kept"
        # If the relation cannot be read, list nothing: the status shows the problem, and items stay.
        entries = () if problem else self._relation.entries()
        yield Listing(display_place(place), "catalogue", entries, complete=not problem, problem=problem)

    async def close(self) -> None:
        await self._server.close()

    async def _ask(
        self, planned: PlannedRequest, leases: Sequence[Lease], *, alone: bool = False
    ) -> list[Fetched | None]:
        async with self._lock:
            if planned.words:
                words = [self._relation.index.keywords[word] for word in planned.words]
                results = await self._server.page(words, planned.page)
            else:
                self._look_ups += 1
                results = await self._server.look_up([self._relation.keys[row] for row in planned.rows])
        if results.problem:
            found: list[Fetched | None] = [*self._backoff.start(results, len(leases))]
        else:
            self._backoff.clear()
            found = self._sort_results(planned, results, leases, alone=alone)
        return self._costs.share(found, results)

    def _sort_results(
        self, planned: PlannedRequest, results: RecordsAnswer, leases: Sequence[Lease], *, alone: bool
    ) -> list[Fetched | None]:
        """Return the result of each lease. Keep the other records of the relation for later batches.
        ``alone`` is True if the one lease must get a result, even if another page may show its record."""
        by_key: dict[str, list[KeyedRecord]] = {}
        for record in results.records:
            by_key.setdefault(record.key, []).append(record)
        known = [self._relation.rows[key] for key in by_key if key in self._relation.rows]
        rows, now_s = np.array(sorted(known), dtype=np.int64), self._context.clock.now_s()
        self._planner.set_page_size(self._server.page_size)
        self._planner.learn(planned, list(by_key), rows, results.total, now_s, has_more=results.has_more)
        self._adopt(results.adoptable)
        leased = {lease.key for lease in leases}
        for key, records in by_key.items():
            if key in self._relation.rows and key not in leased and len(records) == 1:
                self._unrequested[key] = records[0]
        if len(planned.rows) > 1:
            self._learn_from_bulk(planned, by_key, results.total)
        found: list[Fetched | None] = []
        for lease in leases:
            if lease.key in by_key:
                found.append(self._compare(lease, by_key[lease.key]))
                continue
            is_absent = self._is_absent(planned, lease.key, is_whole=len(by_key) == results.total)
            is_open = is_absent is None and not alone
            found.append(None if is_open else self._absent_result(lease.key, is_complete=bool(is_absent)))
        return found

    def _is_absent(self, planned: PlannedRequest, key: str, *, is_whole: bool) -> bool | None:
        """Return whether the server has no record with ``key``, which an answer lacks; None if the answer
        does not tell. ``is_whole`` says that the answer contained as many records as the reported total."""
        if self._relation.rows.get(key) not in planned.rows:
            return None
        if planned.words:
            return self._planner.is_absent(planned)
        return True if len(planned.rows) == 1 or is_whole else None

    def _adopt(self, found: Mapping[str, Mapping[str, object]]) -> None:
        """Take records into the relation that it lacks. They are listed when the relation is read again,
        which the next listing does."""
        separators = {
            attribute.name: getattr(attribute.split, "separator", " ")
            for attribute in self._settings.attributes
        }
        for key, texts in found.items():
            if key in self._relation.rows or key in self._adopted:
                continue
            if len(self._relation.rows) + len(self._adopted) >= self._settings.max_items:
                return
            joined = {name: _joined(texts.get(name), separator) for name, separator in separators.items()}
            self._adopted[key], self._has_adopted = joined, True

    def _learn_from_bulk(
        self, planned: PlannedRequest, by_key: Mapping[str, object], total: int | None
    ) -> None:
        """Learn from the answer to a look-up of several keys that may lack some. If the reported total says
        that the server has more records than it gave, ask for fewer keys at once. If there is no total, the
        missing records are looked up one by one."""
        if total is not None and total > len(by_key) > 0:
            self._planner.keys_at_once = min(self._planner.keys_at_once, len(by_key))
        elif total is None:
            for row in planned.rows:
                if self._relation.keys[row] not in by_key:
                    self._planner.ask_alone(row)

    def _compare(self, lease: Lease, records: Sequence[KeyedRecord]) -> Fetched:
        settings, fields = self._settings, records[0].fields
        if any(other.fields != fields for other in records):
            problem = f"{len(records)} different records have this key in one answer: it must be unique"
            return Fetched("failed", problem=problem)
        missing = [name for name in settings.fields if fields.get(name) is None]
        content = row_json(fields.items())
        if len(missing) == len(settings.fields) > 0:
            return Fetched("failed", problem=f"the server's record has none of {', '.join(missing)}")
        try:
            self._tracker.record(self._relation.rows[lease.key], fields, self._context.clock.now_s())
        except (InputError, UsageError) as error:
            return Fetched("failed", problem=f"fields: {error}", bytes=len(content))
        self._passes.pop(lease.key, None)
        self._absences.pop(lease.key, None)
        copy = lease.content_hash, lease.validators
        try:
            found = compare_content(content, _MEDIA_TYPE, settings.recipe, *copy, settings.least_similarity)
        except ParseBudgetError as error:
            return Fetched("failed", problem=str(error), bytes=len(content))
        return found.to_fetched(content, _MEDIA_TYPE)

    def _absent_result(self, key: str, *, is_complete: bool) -> Fetched:
        """Return the result for a record that was not found. It is not chosen again for a while.
        ``is_complete`` is True if the answer contained all results, so that the record is gone."""
        self._absences[key] += 1
        wait_s = min(_ABSENT_S * 2.0 ** min(self._absences[key] - 1, 30), _LONGEST_ABSENT_S)
        self._tracker.put_off(self._relation.rows[key], self._context.clock.now_s() + wait_s)
        if is_complete:
            return Fetched("gone", problem="the server no longer has a record with this key")
        return Fetched("failed", problem="not on the pages read for its own keywords: set look_up to be sure")

    def _make_planner(self, relation: LocalRelation) -> Planner:
        settings, keywords = self._settings, relation.index.keywords

        def can_ask(words: tuple[int, ...], page: int) -> bool:
            return page == 1 or self._server.can_ask([keywords[word] for word in words], page)

        return Planner(
            relation.index,
            sample_index(settings, relation.index),
            settings.page_size,
            limit=settings.limit,
            keys_at_once=settings.keys_at_once if settings.finds_keys else 0,
            can_ask=can_ask,
        )

    async def _reload_relation(self) -> None:
        """Read the relation again. What was learned about its records and queries is kept."""
        settings, context = self._settings, self._context
        async with self._lock:
            # The stamp is taken before the file is read, so that a write during the reading is noticed later.
            stamp = file_stamp(settings.relation)
            self._has_adopted = False
            relation = await asyncio.to_thread(_read_relation, settings, context, dict(self._adopted))
            self._stamp = stamp
            if relation.digest == self._relation.digest:
                return
            planner = await asyncio.to_thread(self._make_planner, relation)
            known, self._relation, self._planner = self._state(), relation, planner
            self._tracker = RecordTracker(relation, self._measures, relation.rates)
            self._load(known)
            if isinstance(self._server, FileSearchServer):  # it searches for the keywords of one relation
                self._server = FileSearchServer(settings, context, relation.index)
            self._unrequested.clear()


def _joined(value: object, separator: str) -> str:
    """Return the keywords of an adopted record as a relation has them: a list is joined by the separator.

    >>> _joined(["Ann Aue", "Bo"], ";"), _joined("Deep web", " "), _joined(None, " ")
    ('Ann Aue;Bo', 'Deep web', '')
    """
    if isinstance(value, list):
        return separator.join(str(part) for part in value if isinstance(part, str | int))
    return str(value) if isinstance(value, str | int | float) else ""


def _read_relation(
    settings: SearchSettings, context: SourceContext, adopted: Mapping[str, Mapping[str, str]] | None = None
) -> LocalRelation:
    return read_relation(
        settings.relation,
        settings.key,
        settings.attributes,
        settings.weight_expression,
        settings.rate_expression,
        scoped=settings.scoped,
        resolver=context.resolver,
        adopted=adopted,
    )
