"""A search box behind a web address: politely, by the courier that pages are fetched by."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import quote

from afresh.probes.keyword_index import Keyword
from afresh.sources.context import SourceContext
from afresh.sources.http.client import FinalResponse, PoliteClient, RequestCost, default_headers
from afresh.sources.http.fetcher import Fetcher
from afresh.sources.http.secret_headers import all_secrets, secret_headers
from afresh.sources.http.statuses import WITH_CONTENT, classify_reply, requested_delay_s
from afresh.sources.http.throttle import HostBackoffError
from afresh.sources.http.urls import host_group, origin
from afresh.sources.remembering import Rest
from afresh.sources.search.answers import AnswerError, AnswerReader
from afresh.sources.search.server import Results, SearchRecord
from afresh.sources.search.settings import SearchSettings
from afresh.sources.secrets import redactor
from afresh.values.errors import UsageError

_PLAIN = re.compile(r"\w+")
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class HttpSearch:
    """See ``SearchServer``."""

    def __init__(self, settings: SearchSettings, context: SourceContext, fetcher: Fetcher) -> None:
        self._settings, self._clock, self._http = settings, context.clock, settings.http
        self._courier = PoliteClient(self._http, context, fetcher)
        self._read = AnswerReader(settings)
        self._headers = secret_headers(self._http, context.resolver)
        self._hide = redactor(all_secrets(self._http, context.resolver))
        self._host = host_group(page_address(settings, (), 1))

    def wait_s(self) -> float:
        """See ``SearchServer``."""
        return self._courier.wait_s(self._host)

    async def page(self, keywords: Sequence[Keyword], number: int) -> Results:
        """See ``SearchServer``."""
        return await self._ask(page_address(self._settings, keywords, number), self._read.page)

    async def look_up(self, key: str) -> Results:
        """See ``SearchServer``. A 404 says that there is no such record."""

        def one(body: bytes, media_type: str) -> tuple[tuple[SearchRecord, ...], int | None]:
            return self._read.record(body, media_type), None

        return await self._ask(self._settings.look_up.format(key=quote(key, safe="")), one, absent=_ABSENT)

    def rests(self) -> tuple[Rest, ...]:
        """See ``SearchServer``."""
        return tuple(replace(rest, why=self._hide(rest.why)) for rest in self._courier.rests())

    def recall(self, rests: Sequence[Rest]) -> None:
        """See ``SearchServer``."""
        self._courier.recall(rests, ())

    async def close(self) -> None:
        """See ``SearchServer``."""
        await self._courier.close()

    async def _ask(
        self,
        url: str,
        read: Callable[[bytes, str], tuple[tuple[SearchRecord, ...], int | None]],
        absent: Sequence[int] = (),
    ) -> Results:
        trip = RequestCost()
        try:
            arrival = await self._courier.deliver(url, lambda place: self._headers_for(url, place), trip)
            found = self._judged(arrival, read, absent)
        except HostBackoffError as resting:
            found = Results(problem=str(resting), retry_after_s=resting.wait_s)
        except UsageError as wrong:
            found = Results(problem=str(wrong), refused=True)
        return replace(
            found,
            requests=trip.requests,
            bytes=trip.bytes,
            seconds=trip.seconds,
            problem=self._hide(found.problem),
        )

    def _headers_for(self, home: str, url: str) -> dict[str, str]:
        headers = default_headers(self._http) | {"Accept": "application/json"}
        if origin(url) == origin(home):  # what is secret stays with the host that it was given for
            headers |= {name: secret.reveal() for name, secret in self._headers.items()}
        return headers

    def _judged(
        self,
        arrival: FinalResponse,
        read: Callable[[bytes, str], tuple[tuple[SearchRecord, ...], int | None]],
        absent: Sequence[int],
    ) -> Results:
        reply = arrival.reply
        if arrival.barred is not None:
            barred = arrival.barred
            return Results(
                problem=barred.problem, refused=barred.kind == "refused", retry_after_s=barred.retry_after_s
            )
        if reply.trouble is None and reply.status in absent:
            return Results(total=0)
        if reply.trouble is not None or reply.status not in WITH_CONTENT:
            kind, problem = classify_reply(reply, conditional=False)
            wait_s = requested_delay_s(reply, self._clock.now_s())
            return Results(
                problem=problem, refused=kind == "refused", retry_after_s=wait_s, busy=wait_s is not None
            )
        try:
            records, total = read(reply.body, reply.headers.get("content-type", ""))
        except AnswerError as wrong:
            return Results(problem=str(wrong))
        return Results(records, total)


def page_address(settings: SearchSettings, keywords: Sequence[Keyword], number: int) -> str:
    """The address of a page of a query.

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
    text = keyword.text if _PLAIN.fullmatch(keyword.text) else '"' + keyword.text.replace('"', " ") + '"'
    if settings.term:
        return settings.term.format(attribute=keyword.attribute, text=text)
    return f"{keyword.attribute}:{text}" if keyword.attribute else text
