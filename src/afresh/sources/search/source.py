"""The search source: a relation behind a search box, kept fresh by keyword queries and look-ups by key.

Each request is the one that is worth the most (``search_planner``), by the lag that its records are expected
to have gathered (``search_book``). A page refreshes whatever records of ours stand on it; a record is thought
missing only when it is asked for itself and does not come.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from afresh.sources.bulk import shared
from afresh.sources.change_detection import compare_content
from afresh.sources.context import SourceContext
from afresh.sources.http.client import RequestCost
from afresh.sources.remembering import Rest
from afresh.sources.search.factory import find_measures, make_server
from afresh.sources.search.file_server import FileSearch, file_stamp, sample_index
from afresh.sources.search.planner import PlannedRequest, Planner
from afresh.sources.search.record_tracker import RecordTracker
from afresh.sources.search.relation import LocalRelation, read_relation
from afresh.sources.search.relation_tables import is_postgres, shown_place
from afresh.sources.search.saved_state import SearchState, read_state
from afresh.sources.search.server import Results, SearchRecord, SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.sources.single_group import SingleGroupSource
from afresh.sources.sql.canonical_json import row_json
from afresh.values.arrays import Float64s
from afresh.values.errors import AfreshError, InputError, UsageError
from afresh.values.fetched import Fetched, FetchedKind
from afresh.values.lease import Lease
from afresh.values.listing import Listed, Listing

_MEDIA_TYPE = "application/json"
_PASSED_OVER = 8  # times that a lead may be passed over for what is worth more
_BUSY_S = 2.0  # how long a record that somebody else has, or nobody knows yet, is not chosen
_ABSENT_S = 60.0  # how long a record that was not found is not chosen, doubled each time
_LONGEST_ABSENT_S = 86400.0


@dataclass(frozen=True, slots=True)
class _Choice:
    """The request to be sent next, and the keys hoped for; none: what came unasked is handed out."""

    ask: PlannedRequest | None
    keys: tuple[str, ...]


class SearchSource(SingleGroupSource):
    """See ``WeighedSource`` and ``RememberingSource``. One group for all records, one request at a time."""

    def __init__(
        self, settings: SearchSettings, context: SourceContext, server: SearchServer | None = None
    ) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        self._measures = find_measures(settings)
        self._relation = self._read()
        self._server = server or make_server(settings, context, self._relation)
        self._book = RecordTracker(self._relation, self._measures)
        self._planner = self._planned(self._relation)
        self._turn = asyncio.Lock()
        self._choice: _Choice | None = None
        self._unasked: dict[str, SearchRecord] = {}
        self._left: set[str] = set()  # keys that are no longer in the relation, and nobody was told yet
        self._passed: Counter[str] = Counter()
        self._absences: Counter[str] = Counter()
        self._rest = Rest(settings.name, -math.inf)
        self._unpaid = RequestCost()
        self._look_ups = 0

    def ready_s(self, group: str, now_s: float) -> float:
        """When a window opens, and the server has rested; infinite while it is asked."""
        del group
        if self._turn.locked():
            return math.inf
        return self._hours.next_opening_s(max(now_s + self._server.wait_s(), self._rest.until_s))

    # What is remembered.

    def rests(self) -> tuple[Rest, ...]:
        """See ``RememberingSource``."""
        own = (self._rest,) if self._rest.until_s > self._context.clock.now_s() else ()
        return (*own, *self._server.rests())

    def notes(self) -> bytes:
        """When each record was seen, how fast it drifts, and what the queries were found to hold."""
        return self._noted().pack()

    def _noted(self) -> SearchState:
        keys, planner = self._relation.keys, self._planner
        return SearchState(
            tuple(self._book.notes()),
            tuple(planner.notes(keys)),
            tuple(planner.scales()),
            self._look_ups,
            len(keys),
        )

    def recall(self, rests: Sequence[Rest], notes: bytes) -> None:
        """See ``RememberingSource``."""
        longest_s = self._context.clock.now_s() + self._settings.longest_rest
        for rest in rests:
            if rest.group == self.name:
                self._rest = replace(rest, until_s=min(rest.until_s, longest_s))
        self._server.recall([rest for rest in rests if rest.group != self.name])
        self._recall(read_state(notes))

    def _recall(self, known: SearchState) -> None:
        self._left.update(self._book.recall(known.records))
        self._planner.recall(known.queries, self._relation.places)
        self._look_ups = max(self._look_ups, known.look_ups)

    # Choosing and asking.

    def keys(self) -> Sequence[str]:
        """See ``WeighedSource``."""
        return self._relation.keys

    def weigh(self, weights: Float64s) -> None:
        """See ``WeighedSource``."""
        self._book.weigh(weights)

    async def choose(self, lead: str) -> Sequence[str]:
        """See ``ChoosingSource``."""
        if self._unasked or self._left:
            self._choice = _Choice(None, (*self._unasked, *self._left))
            return self._choice.keys
        if self._planner.stale:
            await asyncio.to_thread(self._planner.renew)
        now_s, place = self._context.clock.now_s(), self._relation.places.get(lead)
        if place is None:  # it left the relation: its poll says so, without a request
            self._choice = None
            return (lead,)
        values = self._book.values(now_s)
        must = None
        if self._book.not_before_s[place] <= now_s:
            self._passed[lead] += 1
            if self._passed[lead] > _PASSED_OVER or not values.any():
                must = place
                # What the picker insists on is worth something, whatever we think.
                values[place] = max(values[place], float(values.max()), 1.0)
        ask = self._planner.best(values, must)
        if ask is None:
            self._choice = None
            return (lead,)
        places = self._planner.hoped(ask, values).tolist()
        self._choice = _Choice(ask, tuple(self._relation.keys[at] for at in places))
        return self._choice.keys

    async def poll_chosen(self, leases: Sequence[Lease]) -> list[Fetched | None]:
        """See ``ChoosingSource``."""
        choice, self._choice = self._choice, None
        now_s = self._context.clock.now_s()
        leased = {lease.key for lease in leases}
        for key in choice.keys if choice is not None else ():
            self._left.discard(key)
            if key not in leased and key in self._relation.places:
                self._book.put_off(self._relation.places[key], now_s + _BUSY_S)
                self._unasked.pop(key, None)
        if not leases:
            return []
        if choice is not None and choice.ask is not None:
            return await self._asked(choice.ask, leases)
        return await self._without_request(leases)

    async def _without_request(self, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Hand out what came unasked and what left the relation; of the others one at most is looked up."""
        found: list[Fetched | None] = []
        free = True
        for lease in leases:
            known = lease.key in self._relation.places
            if lease.key in self._unasked and known:
                found.append(self._judged(lease, [self._unasked.pop(lease.key)]))
            elif free or not known:
                free = free and not known
                found.append(await self.poll(lease))
            else:
                found.append(None)
        return found

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Look one record up; see ``Source.poll``. There is nothing conditional about it."""
        del conditional
        place = self._relation.places.get(lease.key)
        if place is None:
            return Fetched("gone", problem="the relation has no record with this key")
        ask = PlannedRequest(place=place)
        if not self._settings.finds_keys:
            ask = PlannedRequest(self._planner.narrow(place))
            if not ask.words:
                words = "the record has no keywords, and look_up is not set: it cannot be asked for"
                return Fetched("refused", problem=words)
        found = (await self._asked(ask, [lease], alone=True))[0]
        assert found is not None
        return found

    async def listings(self) -> AsyncIterator[Listing]:
        """The keys of the relation, read again when its file was written since; a database always."""
        place, problem = self._settings.relation, ""
        if is_postgres(place) or file_stamp(place) != self._stamp:
            try:
                await self._reread()
            except AfreshError as wrong:
                problem = f"{str(wrong).rstrip('.')}; the records read before are kept"
        # A broken one lists nothing, which is said in status; what it listed before stays.
        entries = () if problem else tuple(Listed(key) for key in self._relation.keys)
        yield Listing(shown_place(place), "catalogue", entries, complete=not problem, problem=problem)

    async def close(self) -> None:
        """Let go of the server."""
        await self._server.close()

    async def _asked(
        self, ask: PlannedRequest, leases: Sequence[Lease], *, alone: bool = False
    ) -> list[Fetched | None]:
        async with self._turn:
            if ask.words:
                words = [self._relation.index.keywords[word] for word in ask.words]
                results = await self._server.page(words, ask.page)
            else:
                self._look_ups += 1
                results = await self._server.look_up(self._relation.keys[ask.place])
        if results.problem:
            found: list[Fetched | None] = [*self._failed(results, len(leases))]
        else:
            self._rest = Rest(self.name, -math.inf)
            found = self._came(ask, results, leases, alone=alone)
        return self._paid(found, results)

    def _paid(self, found: Sequence[Fetched | None], results: Results) -> list[Fetched | None]:
        """The cost shared among the answers: the first carries the request, or the first of a later page."""
        before = self._unpaid
        requests, sent = before.requests + results.requests, before.bytes + results.bytes
        seconds = before.seconds + results.seconds
        answers = [one for one in found if one is not None]
        if not answers:
            self._unpaid = RequestCost(requests, sent, seconds)
            return list(found)
        self._unpaid = RequestCost()
        paid = shared(answers, requests=requests, seconds=seconds)
        if sent:
            paid = [replace(one, bytes=0 if at else sent) for at, one in enumerate(paid)]
        left = iter(paid)
        return [None if one is None else next(left) for one in found]

    def _came(
        self, ask: PlannedRequest, results: Results, leases: Sequence[Lease], *, alone: bool
    ) -> list[Fetched | None]:
        """Sort what came: for those who asked, and for those who did not."""
        by_key: dict[str, list[SearchRecord]] = {}
        for record in results.records:
            by_key.setdefault(record.key, []).append(record)
        ours = [self._relation.places[key] for key in by_key if key in self._relation.places]
        places, now_s = np.array(sorted(ours), dtype=np.int64), self._context.clock.now_s()
        self._planner.learn(ask, list(by_key), places, results.total, now_s)
        leased = {lease.key for lease in leases}
        for key, records in by_key.items():
            if key in self._relation.places and key not in leased and len(records) == 1:
                self._unasked[key] = records[0]
        whole = not ask.words or len(by_key) == results.total
        found: list[Fetched | None] = []
        for lease in leases:
            if lease.key in by_key:
                found.append(self._judged(lease, by_key[lease.key]))
            elif not ask.words or alone:
                found.append(self._absent(lease.key, whole=whole))
            else:
                found.append(None)
        return found

    def _judged(self, lease: Lease, records: Sequence[SearchRecord]) -> Fetched:
        """One record against the copy of it."""
        settings, fields = self._settings, records[0].fields
        if any(other.fields != fields for other in records):
            words = f"{len(records)} different records have this key in one answer: it must be unique"
            return Fetched("failed", problem=words)
        missing = [name for name in settings.fields if fields.get(name) is None]
        content = row_json([(name, value) for name, value in fields.items()])
        if len(missing) == len(settings.fields) > 0:
            return Fetched("failed", problem=f"the server's record has none of {', '.join(missing)}")
        try:
            self._book.saw(self._relation.places[lease.key], fields, self._context.clock.now_s())
        except (InputError, UsageError) as wrong:
            return Fetched("failed", problem=f"fields: {wrong}", bytes=len(content))
        self._passed.pop(lease.key, None)
        self._absences.pop(lease.key, None)
        found = compare_content(
            content,
            _MEDIA_TYPE,
            settings.recipe,
            held_hash=lease.content_hash,
            held_notes=lease.validators,
            near_duplicate=settings.near_duplicate,
        )
        return found.fetched(content, _MEDIA_TYPE)

    def _absent(self, key: str, *, whole: bool) -> Fetched:
        """A record that was asked for and did not come."""
        self._absences[key] += 1
        wait_s = min(_ABSENT_S * 2.0 ** min(self._absences[key] - 1, 30), _LONGEST_ABSENT_S)
        self._book.put_off(self._relation.places[key], self._context.clock.now_s() + wait_s)
        if whole:
            return Fetched("gone", problem="the server no longer has a record with this key")
        return Fetched("failed", problem="not on the first page of its own keywords: set look_up to be sure")

    def _failed(self, results: Results, count: int) -> list[Fetched]:
        """The server's fault, not the records': it rests, and they wait."""
        settings, now_s = self._settings, self._context.clock.now_s()
        failures = self._rest.failures + 1
        rest_s = min(settings.first_rest * 2.0 ** min(failures - 1, 30), settings.longest_rest)
        rest_s = max(rest_s, results.retry_after_s or 0.0)
        self._rest = Rest(self.name, now_s + rest_s, failures, results.problem)
        kind: FetchedKind = "refused" if results.refused else "failed"
        return [Fetched(kind, problem=results.problem, retry_after_s=rest_s)] * count

    # The relation.

    def _read(self) -> LocalRelation:
        settings = self._settings
        self._stamp = file_stamp(settings.relation)
        return read_relation(
            settings.relation,
            settings.key,
            settings.attributes,
            settings.weight,
            scoped=settings.scoped,
            resolver=self._context.resolver,
        )

    def _planned(self, relation: LocalRelation) -> Planner:
        settings = self._settings
        sample = sample_index(settings, relation.index)
        return Planner(
            relation.index,
            sample,
            settings.page_size,
            limit=settings.limit,
            look_ups=settings.finds_keys,
        )

    async def _reread(self) -> None:
        """Take the relation as it is now; what was learned of its records is kept."""
        async with self._turn:
            stamp = self._stamp
            try:
                relation = await asyncio.to_thread(self._read)
            except AfreshError:
                self._stamp = stamp
                raise
            if relation.digest == self._relation.digest:
                return
            planner = await asyncio.to_thread(self._planned, relation)
            known, self._relation, self._planner = self._noted(), relation, planner
            self._book = RecordTracker(relation, self._measures)
            self._recall(known)
            if isinstance(self._server, FileSearch):  # it knows the keywords of the relation alone
                self._server = FileSearch(self._settings, self._context, relation.index)
            self._unasked.clear()
            self._choice = None
