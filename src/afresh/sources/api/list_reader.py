"""Reads the list of an API page by page: all records, or those that changed since a value of the cursor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from afresh.sources.api.settings import ApiSettings
from afresh.sources.http.client import RequestCost
from afresh.sources.search.page_sizes import LearnedPageSize, without_missing_page
from afresh.sources.sql.connections import KeyedRecord
from afresh.sources.web_api.api_client import ApiClient
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.sources.web_api.request_template import Value


@dataclass(slots=True)
class ListReading:
    """What was read of a list. ``newest`` is the highest value of the cursor, ``pages`` are the keys on each
    page, and ``cursors`` the values of the cursor by key. ``left_out`` are keys of records that do not fulfil
    the condition. ``failure`` is the answer that ended the reading early; ``is_complete`` says that all
    records are there."""

    records: list[KeyedRecord] = field(default_factory=list)
    cursors: dict[str, object] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    pages: dict[int, tuple[str, ...]] = field(default_factory=dict)
    newest: object = None
    cost: RequestCost = field(default_factory=RequestCost)
    failure: RecordsAnswer | None = None
    is_complete: bool = False

    @property
    def rows(self) -> int:
        return len(self.records) + len(self.left_out)

    def add(self, number: int, answer: RecordsAnswer) -> bool:
        """Add one page. Return whether it has a record that no earlier page had."""
        keys = [record.key for record in answer.records]
        known = self.cursors.keys() | self.left_out
        is_new = any(key not in known for key in (*keys, *answer.left_out))
        self.pages[number] = tuple(keys)
        self.records += answer.records
        self.cursors |= dict(zip(keys, answer.cursors or [None] * len(keys), strict=True))
        self.left_out |= set(answer.left_out)
        self.newest = highest((self.newest, *answer.cursors))
        return is_new

    def spend(self, answer: RecordsAnswer) -> None:
        self.cost.requests += answer.requests
        self.cost.bytes += answer.bytes
        self.cost.seconds += answer.seconds


class ListReader:
    """Reads the list of one source. ``lock`` is held during each request, so that others run in between."""

    def __init__(self, settings: ApiSettings, client: ApiClient, lock: asyncio.Lock) -> None:
        self._settings, self._client, self._lock = settings, client, lock
        self._pages = settings.pages
        self._size = LearnedPageSize(settings.page_size)

    @property
    def page_size(self) -> int:
        """The number of records on a full page, as far as the server's answers show."""
        return self._size.size

    @property
    def page_sizes(self) -> tuple[int, int]:
        """A tuple (records on a page that are asked for, those that the server gives), to be saved."""
        return self._settings.page_size, self._size.size

    def load_page_sizes(self, page_sizes: tuple[int, int]) -> None:
        """Use saved page sizes, if as many records are asked for as then."""
        asked, learned = page_sizes
        if asked == self._settings.page_size and learned > 0:
            self._size.load(learned)

    def can_ask(self, number: int) -> bool:
        """Return whether a page of the whole list can be requested now."""
        return self._pages.can_ask("all", number)

    async def page(self, number: int) -> RecordsAnswer:
        """Request one page of the whole list."""
        return await self._page("all", "", number)

    async def read(self, since: object = None) -> ListReading:
        """Read all pages of the records that changed since this value of the cursor; by default of all."""
        found, number, is_first = ListReading(), 0, since is None
        query = "all" if is_first else "changes"
        self._pages.forget(query)
        while number < self._settings.max_pages:
            number += 1
            answer = await self._page(query, "" if is_first else since, number)
            found.spend(answer)
            if answer.problem:
                found.failure = answer
                return found
            is_new = found.add(number, answer)
            if not is_new or self._is_last(answer, found.rows):
                # A list that changes while it is read may have lost records: then its total is higher.
                found.is_complete = answer.total is None or found.rows >= answer.total
                return found
        return found

    async def _page(self, query: str, since: object, number: int) -> RecordsAnswer:
        values: dict[str, Value] = {"cursor": since if isinstance(since, int | float) else str(since)}
        async with self._lock:
            answer = await self._client.page(self._pages, query, values, number, self._size.step)
        if self._pages.way == "number":
            answer = without_missing_page(answer, number, self._size)
        if not answer.problem:
            self._size.observe(number, _rows(answer), answer.total)
        return answer

    def _is_last(self, answer: RecordsAnswer, rows: int) -> bool:
        if answer.has_more is not None:
            return not answer.has_more or (answer.total is not None and rows >= answer.total)
        if self._pages.way == "single" or answer.total is not None:
            return self._pages.way == "single" or rows >= (answer.total or 0)
        return self._size.is_last(_rows(answer))


def _rows(answer: RecordsAnswer) -> int:
    return len(answer.records) + len(answer.left_out)


def highest(values: Sequence[object]) -> object:
    """Return the highest of the values of a cursor, numbers or texts; None if there is none.

    >>> highest([None, "2026-01-02", "2026-01-10"]), highest([3, 20.5]), highest([])
    ('2026-01-10', 20.5, None)
    """
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers:
        return max(numbers)
    return max((value for value in values if isinstance(value, str) and value), default=None)
