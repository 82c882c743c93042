"""A search box behind a web address, asked by the same polite client that fetches pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import quote

from afresh.probes.keyword_index import Keyword
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.context import SourceContext
from afresh.sources.http.client import FinalResponse, PoliteClient, RequestCost, default_headers
from afresh.sources.http.fetcher import Fetcher
from afresh.sources.http.settings import all_secrets, secret_headers
from afresh.sources.http.statuses import WITH_CONTENT, classify_reply, requested_delay_s
from afresh.sources.http.throttle import HostBackoffError
from afresh.sources.http.urls import host_group, origin
from afresh.sources.search.answers import AnswerError, AnswerReader
from afresh.sources.search.search_server import SearchRecord, SearchResults, SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.sources.secrets import redactor
from afresh.values.errors import UsageError

ReadAnswer: TypeAlias = Callable[[bytes, str], tuple[tuple[SearchRecord, ...], int | None]]
"""Reads records and total from the body of an answer and its media type."""

_SINGLE_WORD = re.compile(r"\w+")
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class HttpSearchServer(SearchServer):
    """See ``SearchServer``."""

    def __init__(self, settings: SearchSettings, context: SourceContext, fetcher: Fetcher) -> None:
        self._settings, self._clock, self._http = settings, context.clock, settings.http
        self._client = PoliteClient(self._http, context, fetcher)
        self._reader = AnswerReader(settings)
        self._headers = secret_headers(self._http, context.resolver)
        self._hide = redactor(all_secrets(self._http, context.resolver))
        self._host = host_group(page_address(settings, (), 1))

    def wait_s(self) -> float:
        """See ``SearchServer``."""
        return self._client.wait_s(self._host)

    async def page(self, keywords: Sequence[Keyword], number: int) -> SearchResults:
        """See ``SearchServer``."""
        return await self._ask(page_address(self._settings, keywords, number), self._reader.page)

    async def look_up(self, key: str) -> SearchResults:
        """See ``SearchServer``. A 404 means that there is no such record."""

        def read(body: bytes, media_type: str) -> tuple[tuple[SearchRecord, ...], int | None]:
            return self._reader.record(body, media_type), None

        return await self._ask(self._settings.look_up.format(key=quote(key, safe="")), read, absent=_ABSENT)

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """See ``SearchServer``."""
        return tuple(replace(one, why=self._hide(one.why)) for one in self._client.backoffs())

    def load_backoffs(self, backoffs: Sequence[GroupBackoff]) -> None:
        """See ``SearchServer``."""
        self._client.load_state(backoffs, ())

    async def close(self) -> None:
        """See ``SearchServer``."""
        await self._client.close()

    async def _ask(self, url: str, read: ReadAnswer, absent: Sequence[int] = ()) -> SearchResults:
        cost = RequestCost()
        try:
            response = await self._client.fetch(url, lambda hop: self._headers_for(url, hop), cost)
            found = self._interpret(response, read, absent)
        except HostBackoffError as error:
            found = SearchResults(problem=str(error), retry_after_s=error.wait_s)
        except UsageError as error:
            found = SearchResults(problem=str(error), refused=True)
        return replace(
            found,
            requests=cost.requests,
            bytes=cost.bytes,
            seconds=cost.seconds,
            problem=self._hide(found.problem),
        )

    def _headers_for(self, home: str, url: str) -> dict[str, str]:
        headers = default_headers(self._http) | {"Accept": "application/json"}
        if origin(url) == origin(home):  # secrets stay with the host that they were given for
            headers |= {name: secret.reveal() for name, secret in self._headers.items()}
        return headers

    def _interpret(self, response: FinalResponse, read: ReadAnswer, absent: Sequence[int]) -> SearchResults:
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
        try:
            records, total = read(reply.body, reply.headers.get("content-type", ""))
        except AnswerError as error:
            return SearchResults(problem=str(error))
        return SearchResults(records, total)


def page_address(settings: SearchSettings, keywords: Sequence[Keyword], number: int) -> str:
    """Return the address of a page of a query.

    >>> settings = SearchSettings(name="s", relation="r.csv", key="id", keywords="title",
    ...     server="https://a.test/?q={query}&start={offset}")
    >>> page_address(settings, [Keyword("", "web"), Keyword("", "junghoo cho")], 2)
    'https://a.test/?q=web%20%22junghoo%20cho%22&start=10'
    """
    query = settings.joined_by.join(_term(settings, keyword) for keyword in keywords)
    return settings.server.format(
        query=quote(query, safe=""),
        page=settings.first_page + number - 1,
        offset=(number - 1) * settings.page_size,
        size=settings.page_size,
    )


def _term(settings: SearchSettings, keyword: Keyword) -> str:
    plain = _SINGLE_WORD.fullmatch(keyword.text)
    text = keyword.text if plain else '"' + keyword.text.replace('"', " ") + '"'
    if settings.term:
        return settings.term.format(attribute=keyword.attribute, text=text)
    return f"{keyword.attribute}:{text}" if keyword.attribute else text
