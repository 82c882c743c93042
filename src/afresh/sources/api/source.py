"""The api source: its items are the records that a web API lists, and requests refresh many of them at once.

Records that a page brings without being asked for are kept, and handed out to later polls without a request.
When a list of changes does not name a record, that record has not changed: its poll ends as "unchanged". The
next request is chosen by the sum of the poll values of the records that it shows (``request_choice``)."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from afresh.sources.api.known_records import KnownRecords
from afresh.sources.api.list_reader import ListReader, ListReading
from afresh.sources.api.request_choice import Abilities, ApiChoice, best_request
from afresh.sources.api.saved_list import SavedList, read_list_state
from afresh.sources.api.settings import ApiSettings
from afresh.sources.capabilities import Batch, Capabilities, GroupBackoff
from afresh.sources.change_detection import compare_content, most_bytes_here
from afresh.sources.context import SourceContext
from afresh.sources.http.urls import display_url, host_group
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.source import SingleGroupSource
from afresh.sources.sql.canonical_json import row_json
from afresh.sources.sql.connections import KeyedRecord
from afresh.sources.watermarks import Watermarks
from afresh.sources.web_api.api_client import ApiClient
from afresh.sources.web_api.cost_sharing import CostSharing
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.sources.web_api.server_backoff import ServerBackoff
from afresh.values.arrays import Float64s
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

_MEDIA_TYPE = "application/json"
_MOST_KEPT = 50_000  # records that are kept for polls to come
_MOST_AT_ONCE = 5_000  # kept records that one batch contains: more would be one very long transaction
_BUSY_S = 2.0  # a record that has no lease is not chosen again for this time
_MOST_PASSES = 8  # how often another request of higher value may be chosen instead of the lead


class ApiSource(SingleGroupSource):
    """A ``BatchSource`` and ``StatefulSource`` for the records of a list, which form one group."""

    def __init__(self, settings: ApiSettings, context: SourceContext) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        self._client = ApiClient(settings, context)
        self._look_up, self._bulk = settings.look_up_request, settings.bulk_request
        self._host = host_group(settings.pages.request("", {}, 1, 1).url)
        self._lock = asyncio.Lock()
        self._reader = ListReader(settings, self._client, self._lock)
        self._known = KnownRecords()
        self._kept: dict[str, KeyedRecord] = {}  # records that came without a lease
        self._kept_not_before_s: dict[str, float] = {}
        self._births: dict[str, str] = {}  # keys that changes brought, with their cursors
        self._passes: Counter[str] = Counter()
        self._watermarks = Watermarks()
        self._full_s = self._read_s = -math.inf
        self._changes_per_s = 0.0
        self._backoff = ServerBackoff(settings, context.clock)
        self._costs = CostSharing()
        self.capabilities = Capabilities(batches=self, state=self)

    def ready_s(self, group: str, now_s: float) -> float:
        """Return when windows and back-off allow a request (Unix seconds); infinite while one is running."""
        del group
        if self._lock.locked():
            return math.inf
        return self._windows.next_opening_s(
            max(now_s + self._client.wait_s(self._host), self._backoff.until_s)
        )

    # State that is saved.

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        return (*self._backoff.save(), *self._client.backoffs())

    def save_state(self) -> bytes:
        notes = tuple(self._known.tracker.save())
        known = (self._known.pages, self._reader.page_sizes)
        return SavedList(notes, self._watermarks, self._full_s, self._read_s, *known).pack()

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        self._client.load_backoffs(self._backoff.load(backoffs))
        saved = read_list_state(state)
        self._reader.load_page_sizes(saved.page_sizes)
        self._known.load(saved.records)
        if saved.read_s > self._read_s:
            self._read_s, self._watermarks = saved.read_s, saved.watermarks
            self._known.pages = dict(saved.pages)
        if self._settings.keys_at_once or self._reader.can_ask(2):
            self._full_s = max(self._full_s, saved.full_s)  # else only a reading from the start reaches pages

    # Choosing and sending requests.

    def keys(self) -> Sequence[str]:
        return self._known.table.keys

    async def choose(self, lead: str, weights: Float64s | None = None) -> Batch:
        """Implement ``BatchSource.choose``. Records that are kept need no request."""
        known, now_s = self._known, self._context.clock.now_s()
        if weights is not None and weights.size == len(known.table.keys):
            known.tracker.set_weights(weights)
        free = [key for key in self._kept if self._kept_not_before_s.get(key, 0.0) <= now_s]
        if free:
            return Batch(tuple(free[:_MOST_AT_ONCE]))
        row = known.table.rows.get(lead)
        if row is None:
            return Batch((lead,))
        values, must = known.tracker.values(now_s), None
        self._passes[lead] += 1
        if self._passes[lead] > _MOST_PASSES or not values.any():
            must = row
            values[row] = max(values[row], float(values.max()), 1.0)
        choice = best_request(known, values, self._abilities(now_s), must)
        if choice is None:
            return Batch((lead,))
        keys = tuple(known.table.keys[row] for row in choice.rows)
        return Batch(keys, choice)

    def _abilities(self, now_s: float) -> Abilities:
        settings, known = self._settings, self._watermarks.known
        return Abilities(
            settings.keys_at_once,
            known[0][0] if settings.lists_changes and known else None,
            math.ceil(self._changes_per_s * (now_s - self._read_s) / self._reader.page_size),
            self._reader.can_ask,
        )

    async def poll_batch(self, batch: Batch, leases: Sequence[Lease]) -> list[Fetched | None]:
        now_s, leased = self._context.clock.now_s(), {lease.key for lease in leases}
        request = batch.request
        for key in batch.keys:
            if key not in leased:
                self._kept_not_before_s[key] = now_s + _BUSY_S
                row = self._known.table.rows.get(key)
                # Lists show records whoever has their leases; only a look-up would be in vain.
                if row is not None and isinstance(request, ApiChoice) and request.kind == "look_up":
                    self._known.tracker.put_off(row, now_s + _BUSY_S)
        if not leases:
            return []
        if not isinstance(request, ApiChoice):
            return await self._without_request(leases)
        if request.kind == "changes":
            return await self._read_changes(leases)
        if request.kind == "page":
            answer = await self._reader.page(request.page)
            if not answer.problem:
                self._known.pages[request.page] = tuple(record.key for record in answer.records)
            return await self._results(answer, leases)
        answer = await self._ask_for([lease.key for lease in leases])
        is_complete = len(leases) == 1 or answer.total == len(answer.records) + len(answer.left_out)
        return await self._results(answer, leases, all_there=is_complete)

    async def _without_request(self, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Return results for records that are kept. An item alone is polled, whatever that takes."""
        if len(leases) == 1:
            return [await self.poll(leases[0])]
        return [await self.poll(lease) if lease.key in self._kept else None for lease in leases]

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Poll one item. An audit (``conditional=False``) always sends a request."""
        if conditional and lease.key in self._kept:
            return await self._compare(lease, [self._kept.pop(lease.key)])
        if self._settings.keys_at_once:
            found = await self._results(await self._ask_for([lease.key]), [lease], all_there=True)
            return found[0] or Fetched("failed", problem="the server did not say whether it has the record")
        if self._known.pages and lease.key not in self._known.table.rows:
            return Fetched("gone", problem="the server does not list it any more")
        number = next((at for at, keys in self._known.pages.items() if lease.key in keys), 1)
        if not self._reader.can_ask(number):
            self._full_s = -math.inf  # the pages after the first are reached by reading all
            words, wait_s = "look_up is not set: its list is read again", self._settings.listings_every
            return Fetched("failed", problem=words, retry_after_s=wait_s)
        answer = await self._reader.page(number)
        found = await self._results(answer, [lease])
        return found[0] or Fetched("failed", problem="it is not on its page of the list any more")

    async def _ask_for(self, keys: Sequence[str]) -> RecordsAnswer:
        async with self._lock:
            if len(keys) == 1 and self._look_up is not None:
                return await self._client.look_up(self._look_up, keys[0])
            assert self._bulk is not None
            return await self._client.bulk_look_up(self._bulk, keys)

    async def _read_changes(self, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Read the records that changed. A leased record that is not among them has not changed, if its copy
        is at least as new as the cursor from which the changes were read."""
        since_s = self._watermarks.known[0][0]
        reading = await self._read(self._watermarks.since)
        answer = RecordsAnswer(
            tuple(reading.records),
            requests=reading.cost.requests,
            bytes=reading.cost.bytes,
            seconds=reading.cost.seconds,
            left_out=tuple(reading.left_out),
        )
        if reading.failure is not None:
            self._keep(reading.records, leases)
            failed = replace(reading.failure, requests=answer.requests, bytes=answer.bytes)
            return await self._results(replace(failed, seconds=answer.seconds), leases)
        self._births |= {
            key: str(mark or "") for key, mark in reading.cursors.items() if key not in self._known.table.rows
        }
        return await self._results(answer, leases, unchanged_since_s=since_s if reading.is_complete else None)

    async def _results(
        self,
        answer: RecordsAnswer,
        leases: Sequence[Lease],
        *,
        all_there: bool = False,
        unchanged_since_s: float | None = None,
    ) -> list[Fetched | None]:
        """Return the result of each lease, and keep the other records. With ``all_there``, a record that the
        answer lacks is gone. With ``unchanged_since_s``, it has not changed since that time."""
        if answer.problem:
            return self._costs.share(self._backoff.start(answer, len(leases)), answer)
        self._backoff.clear()
        by_key: dict[str, list[KeyedRecord]] = {}
        for record in answer.records:
            by_key.setdefault(record.key, []).append(record)
        self._keep(answer.records, leases)
        found: list[Fetched | None] = []
        for lease in leases:
            if lease.key in by_key:
                found.append(await self._compare(lease, by_key[lease.key]))
            elif lease.key in answer.left_out:
                found.append(Fetched("gone", problem="its record does not fulfil where any more"))
            elif unchanged_since_s is not None:
                found.append(self._confirm(lease, unchanged_since_s))
            elif all_there:
                self._passes.pop(lease.key, None)
                found.append(Fetched("gone", problem="the server has no record with this key"))
            else:
                found.append(None)
        return self._costs.share(found, answer)

    def _keep(self, records: Sequence[KeyedRecord], leases: Sequence[Lease]) -> None:
        """Keep the records that have no lease, for the polls to come; the oldest are dropped if there are too
        many."""
        leased = {lease.key for lease in leases}
        for record in records:
            self._kept.pop(record.key, None)
            if record.key not in leased:
                self._kept[record.key] = record
        while len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def _confirm(self, lease: Lease, since_s: float) -> Fetched | None:
        row = self._known.table.rows.get(lease.key)
        if lease.content_hash is None or lease.polled_s is None or lease.polled_s < since_s or row is None:
            return None
        self._known.tracker.confirm(row, self._context.clock.now_s())
        self._passes.pop(lease.key, None)
        return Fetched("unchanged", validators=lease.validators)

    async def _compare(self, lease: Lease, records: Sequence[KeyedRecord]) -> Fetched:
        settings, fields = self._settings, records[0].fields
        self._kept_not_before_s.pop(lease.key, None)
        if any(other.fields != fields for other in records):
            problem = f"{len(records)} different records have this key in one answer: it must be unique"
            return Fetched("failed", problem=problem)
        content = row_json(fields.items())
        if fields and all(value is None for value in fields.values()):
            return Fetched("failed", problem=f"the server's record has none of {', '.join(fields)}")
        row = self._known.table.rows.get(lease.key)
        if row is not None:
            self._known.tracker.record(row, fields, self._context.clock.now_s())
        self._passes.pop(lease.key, None)
        copy, near = (lease.content_hash, lease.validators), settings.least_similarity
        recipe = settings.recipe.for_item(lease.selector)
        try:
            found = await self._context.parsers.parse(
                compare_content,
                content,
                _MEDIA_TYPE,
                recipe,
                *copy,
                near,
                small=most_bytes_here(recipe, near),
                party=self.name,
            )
        except ParseBudgetError as error:
            return Fetched("failed", problem=str(error), bytes=len(content))
        return found.to_fetched(content, _MEDIA_TYPE)

    # Listings.

    async def _read(self, since: object = None) -> ListReading:
        """Read the list, or its changes, and advance the cursor if all was read."""
        start_s = self._context.clock.now_s()
        reading = await self._reader.read(since)
        if reading.failure is None and (since is None or reading.is_complete):
            elapsed_s = start_s - self._read_s
            if since is not None and elapsed_s > 0:
                self._changes_per_s = len(reading.records) / max(elapsed_s, self._settings.overlap)
            self._watermarks = self._watermarks.add(start_s, reading.newest, self._settings.overlap)
            self._read_s = start_s
        return reading

    async def listings(self) -> AsyncIterator[Listing]:
        """List all records when that is due, else the changes. Changes that polls have read need no request.
        During a back-off, list nothing."""
        settings, now_s = self._settings, self._context.clock.now_s()
        if self._backoff.until_s > now_s:
            return
        is_full = now_s >= self._full_s or (not settings.lists_changes and not self._known.table.keys)
        if is_full:
            reading = await self._read()
            self._take_whole_list(reading, now_s)
        elif settings.lists_changes and now_s >= self._read_s + settings.listings_every:
            reading = await self._read(self._watermarks.since)
        else:
            reading = ListReading()
        if reading.failure is not None:
            self._backoff.start(reading.failure, 0)
        self._keep(reading.records, ())
        self._known.add(reading.cursors)
        marks = {key: str(mark or "") for key, mark in reading.cursors.items()} | self._births
        self._known.add(self._births)
        self._births = {}
        yield self._listing(reading, marks, complete=is_full and reading.is_complete)

    def _take_whole_list(self, reading: ListReading, now_s: float) -> None:
        if reading.failure is not None:
            return
        self._known.pages = reading.pages
        self._full_s = now_s + self._settings.full_every
        if reading.is_complete:
            self._known.keep_only(reading.cursors)

    def _listing(self, reading: ListReading, marks: Mapping[str, str], *, complete: bool) -> Listing:
        failure, cost, numbers = reading.failure, reading.cost, self._settings.numbers
        cells = {
            record.key: [record.fields.get(name) for name in numbers.columns]
            for record in (reading.records if numbers.columns else ())
        }
        problem = failure.problem if failure is not None else ""
        if not problem and len(reading.pages) >= self._settings.max_pages:
            problem = f"the list has more than max_pages = {self._settings.max_pages:,} pages"
        return Listing(
            display_url(self._settings.list.url.partition("?")[0]),
            "query",
            numbers.entries(marks, cells),
            complete=complete,
            requests=cost.requests,
            bytes=cost.bytes,
            seconds=cost.seconds,
            problem=problem,
        )

    async def close(self) -> None:
        await self._client.close()
