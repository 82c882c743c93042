"""A search server on the web. Its requests use the same client as those for web pages.

JSON paths in the settings locate the total, the records, their keys and their fields in an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import quote

from afresh.probes.keyword_index import Keyword
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.change_detection import compile_json_path
from afresh.sources.context import SourceContext
from afresh.sources.http.client import FinalResponse, PoliteClient, RequestCost
from afresh.sources.http.fetcher import Fetcher
from afresh.sources.http.statuses import WITH_CONTENT, classify_reply, requested_delay_s
from afresh.sources.http.throttle import HostBackoffError
from afresh.sources.http.urls import host_group
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.search.page_sizes import LearnedPageSize
from afresh.sources.search.search_server import SearchResults, SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.sources.sql.connections import KeyedRecord
from afresh.values.errors import UsageError
from afresh.values.formatting import one_line

ReadAnswer: TypeAlias = Callable[[bytes, str, SearchSettings], SearchResults]
"""A function (body, media type, settings) that returns the records and the total of an answer."""

_MOST_NAMES = 8  # keys of an answer that are shown if a path is wrong
_SHOWN_CHARACTERS = 60
_SINGLE_WORD = re.compile(r"\w+")
_ACCEPT = {"Accept": "application/json"}
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class AnswerError(Exception):
    """An answer cannot be read; the message says why. Code in ``sources`` catches this error."""


class AnswerReader:
    """Reads the records and the total from a JSON answer, by the JSON paths in the settings.

    >>> settings = SearchSettings(name="s", relation="r.csv", key="id", keywords="title",
    ...     server="http://a.test/?q={query}&p={page}", total="count", rows="data",
    ...     fields={"price": "absolute"})
    >>> read = AnswerReader(settings)
    >>> read.page(b'{"count": "1", "data": [{"id": 7, "price": 2.5}]}', "application/json")
    ((KeyedRecord(key='7', fields={'price': 2.5}),), 1)
    >>> read.page(b"busy", "text/plain")
    Traceback (most recent call last):
    afresh.sources.search.http_server.AnswerError: not JSON: it begins with 'busy'
    """

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._total = _finder(settings.total)
        self._rows = _finder(settings.rows)
        self._key = _finder(settings.path_of(settings.key))
        self._fields: Mapping[str, Callable[[Any], Any]] = {
            name: _finder(settings.path_of(name)) for name in settings.fields
        }

    def page(self, body: bytes, media_type: str) -> tuple[tuple[KeyedRecord, ...], int | None]:
        answer = _parse(body, media_type)
        rows = self._rows(answer)
        if not isinstance(rows, list):
            raise AnswerError(
                f"rows: {self._settings.rows!r} is no list in the answer, {_describe_keys(answer)}"
            )
        return tuple(self._record(row) for row in rows), self._read_total(answer)

    def _read_total(self, answer: Any) -> int | None:
        """Return the total, or None if the answer has no total or the total is not a valid number."""
        total = self._total(answer)
        if isinstance(total, str) and total.strip().isdecimal():
            total = int(total)
        is_number = isinstance(total, int | float) and not isinstance(total, bool)
        return int(total) if is_number and 0 <= total < 1e15 else None

    def record(self, body: bytes, media_type: str) -> tuple[KeyedRecord, ...]:
        """Return the record in the answer to a look-up: its rows if it has any, or else the whole answer."""
        answer = _parse(body, media_type)
        rows = self._rows(answer) if isinstance(answer, dict) else answer
        if isinstance(rows, list):
            return tuple(self._record(row) for row in rows)
        return (self._record(answer),) if answer else ()

    def _record(self, row: object) -> KeyedRecord:
        key = self._key(row)
        if not isinstance(key, str | int | float) or isinstance(key, bool) or key == "":
            path = self._settings.path_of(self._settings.key)
            raise AnswerError(f"key_path: {path} is no text or number in a row, {_describe_keys(row)}")
        fields = {name: find(row) for name, find in self._fields.items()}
        if not fields and isinstance(row, dict):
            fields = row
        return KeyedRecord(str(key), fields)


def read_page(body: bytes, media_type: str, settings: SearchSettings) -> SearchResults:
    """Return the records and the total of a page of results, or the problem with it."""
    try:
        return SearchResults(*AnswerReader(settings).page(body, media_type))
    except AnswerError as error:
        return SearchResults(problem=str(error))


def read_record(body: bytes, media_type: str, settings: SearchSettings) -> SearchResults:
    """Return the record in the answer to a look-up, or the problem with it."""
    try:
        return SearchResults(AnswerReader(settings).record(body, media_type), None)
    except AnswerError as error:
        return SearchResults(problem=str(error))


def _finder(path: str) -> Callable[[Any], Any]:
    if not path:
        return lambda _: None
    search = compile_json_path("path", path)

    def find(answer: Any) -> Any:
        try:
            return search(answer)
        except Exception as error:  # noqa: BLE001  (jmespath raises many kinds for data of the wrong type)
            raise AnswerError(f"{path!r} does not fit the answer: {one_line(error)}") from None

    return find


def _parse(body: bytes, media_type: str) -> Any:
    if "html" in media_type.lower() or body.lstrip()[:1] == b"<":
        raise AnswerError("HTML instead of JSON: a captcha, a log-in or an error page")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        start = body[:_SHOWN_CHARACTERS].decode("utf-8", "replace")
        raise AnswerError(f"not JSON: it begins with {start!r}") from None


def _describe_keys(value: object) -> str:
    if isinstance(value, dict):
        names = list(value)[:_MOST_NAMES]
        return f"which has {', '.join(map(str, names))}" if names else "which is empty"
    return f"which is a {type(value).__name__}"


class HttpSearchServer(SearchServer):
    """A ``SearchServer`` on the web."""

    def __init__(self, settings: SearchSettings, context: SourceContext, fetcher: Fetcher) -> None:
        self._settings, self._clock, self._parsers = settings, context.clock, context.parsers
        self._client = PoliteClient(settings.http, context, fetcher)
        self._host = host_group(page_address(settings, (), 1))
        self._learned_size = LearnedPageSize(settings.page_size, settings.limit)
        self.page_size = settings.page_size

    def load_page_size(self, size: int) -> None:
        self.page_size = self._learned_size.size = size

    def wait_s(self) -> float:
        return self._client.wait_s(self._host)

    async def page(self, keywords: Sequence[Keyword], number: int) -> SearchResults:
        found = await self._ask(page_address(self._settings, keywords, number, self.page_size), read_page)
        if not found.problem:
            self._learned_size.observe(number, len(found.records), found.total)
            self.page_size = self._learned_size.size
        return found

    async def look_up(self, key: str) -> SearchResults:
        """Return the record with this key. A status of 404 or 410 means that there is no such record."""
        address = self._settings.look_up.format(key=quote(key, safe=""))
        return await self._ask(address, read_record, absent=_ABSENT)

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        return self._client.backoffs()

    def load_backoffs(self, backoffs: Sequence[GroupBackoff]) -> None:
        self._client.load_state(backoffs, ())

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, url: str, read: ReadAnswer, absent: Sequence[int] = ()) -> SearchResults:
        cost = RequestCost()
        try:
            response = await self._client.fetch(url, url, lambda _: _ACCEPT, cost)
            found = await self._interpret(response, read, absent)
        except HostBackoffError as error:
            found = SearchResults(problem=str(error), retry_after_s=error.wait_s)
        except UsageError as error:
            found = SearchResults(problem=str(error), refused=True)
        return replace(
            found,
            requests=cost.requests,
            bytes=cost.bytes,
            seconds=cost.seconds,
            problem=self._client.hide(found.problem),
        )

    async def _interpret(
        self, response: FinalResponse, read: ReadAnswer, absent: Sequence[int]
    ) -> SearchResults:
        reply, blocked = response.reply, response.blocked
        if blocked is not None:
            return SearchResults(
                problem=blocked.problem,
                refused=blocked.kind == "refused",
                retry_after_s=blocked.retry_after_s,
            )
        if reply.trouble is None and reply.status in absent:
            return SearchResults(total=0)
        if reply.trouble is not None or reply.status not in WITH_CONTENT:
            kind, problem = classify_reply(reply, conditional=False)
            wait_s = requested_delay_s(reply, self._clock.now_s())
            return SearchResults(
                problem=problem, refused=kind == "refused", retry_after_s=wait_s, busy=wait_s is not None
            )
        media_type = reply.headers.get("content-type", "")
        try:
            return await self._parsers.parse(read, reply.body, media_type, self._settings)
        except ParseBudgetError as error:
            return SearchResults(problem=str(error))


def page_address(
    settings: SearchSettings, keywords: Sequence[Keyword], number: int, page_size: int | None = None
) -> str:
    """Return the URL of page ``number`` (from 1) of the results for ``keywords``. ``page_size`` is the number
    of results that earlier pages hold, if it is not that of the settings.

    >>> settings = SearchSettings(name="s", relation="r.csv", key="id", keywords="title",
    ...     server="https://a.test/?q={query}&start={offset}")
    >>> page_address(settings, [Keyword("", "web"), Keyword("", "junghoo cho")], 2)
    'https://a.test/?q=web%20%22junghoo%20cho%22&start=10'
    """
    query = settings.joined_by.join(_term(settings, keyword) for keyword in keywords)
    return settings.server.format(
        query=quote(query, safe=""),
        page=settings.first_page + number - 1,
        offset=(number - 1) * (page_size or settings.page_size),
        size=settings.page_size,
    )


def _term(settings: SearchSettings, keyword: Keyword) -> str:
    plain = _SINGLE_WORD.fullmatch(keyword.written)
    text = keyword.written if plain else '"' + keyword.written.replace('"', " ") + '"'
    if settings.term:
        return settings.term.format(attribute=keyword.attribute, text=text)
    return f"{keyword.attribute}:{text}" if keyword.attribute else text
