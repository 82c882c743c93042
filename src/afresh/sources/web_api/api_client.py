"""Sends the requests of a web API by the client of web pages, and reads the answers.

Answers are parsed within the parse budget. Secrets go only to the host of the endpoint that the settings
name: the address of a next page that leads to another host is not followed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus

from afresh.sources.capabilities import GroupBackoff
from afresh.sources.context import SourceContext
from afresh.sources.http.client import FinalResponse, PoliteClient, RequestBody, RequestCost
from afresh.sources.http.settings import make_fetcher
from afresh.sources.http.statuses import WITH_CONTENT, classify_reply, host_condition, requested_delay_s
from afresh.sources.http.throttle import HostBackoffError
from afresh.sources.http.urls import host_group
from afresh.sources.parsing.parse_budget import SMALL_BYTES, ParseBudgetError
from afresh.sources.web_api.access import ApiAccess
from afresh.sources.web_api.answer_shape import AnswerShape
from afresh.sources.web_api.answers import SMALL_MARKED_UP_BYTES, ReadAnswer, read_list, read_record
from afresh.sources.web_api.paging import HEADER, PagedRequest, next_address, next_in_headers
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.sources.web_api.request_template import ApiRequest, RequestTemplate, Value
from afresh.sources.web_api.settings import WebApiSettings
from afresh.values.errors import UsageError

_ACCEPT = {
    "json": "application/json",
    "html": "text/html,application/xhtml+xml",
    "xml": "application/xml,text/xml",
}
ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
EXPIRED = (*ABSENT, HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
"""How servers refuse a page that does not exist, or whose token has expired."""


class ApiClient:
    """Asks one web API for pages of lists, and for records by their keys. Problems are returned in the
    answer and not raised."""

    def __init__(self, settings: WebApiSettings, context: SourceContext) -> None:
        self._settings, self._clock, self._parsers = settings, context.clock, context.parsers
        access = None
        if settings.parameters or settings.oauth or settings.sign:
            access = ApiAccess(settings.name, context, settings.parameters, settings.oauth, settings.sign)
        http = settings.http
        self._client = PoliteClient(http, context, make_fetcher(http, context), access)
        self._shape: AnswerShape = settings.shape

    def wait_s(self, host: str) -> float:
        return self._client.wait_s(host)

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        return self._client.backoffs()

    def load_backoffs(self, backoffs: Sequence[GroupBackoff]) -> None:
        self._client.load_state(backoffs, ())

    async def close(self) -> None:
        await self._client.close()

    async def page(
        self,
        pages: PagedRequest,
        query: Hashable,
        values: Mapping[str, Value],
        number: int,
        page_size: int,
    ) -> RecordsAnswer:
        """Return page ``number``, counted from 1, of a list. ``query`` identifies the list with these
        ``values``; ``page_size`` is the number of records that earlier pages hold."""
        request = pages.request(query, values, number, page_size)
        home = pages.template.endpoint.url
        found = await self._ask(request, home, read_list, self._shape)
        if found.next and pages.way == "address":
            address = next_address(request.url, found.next, self._settings.parameters)
            problem = "" if address else "next: leads to another host, which is not asked"
            found = replace(found, next=address, problem=found.problem or problem)
        if found.status in EXPIRED and number > 1:
            pages.forget(query)
        if not found.problem:
            pages.learn(query, number, found.next)
            if pages.way in ("token", "address"):
                found = replace(found, has_more=bool(found.next))
        return found

    async def look_up(self, template: RequestTemplate, key: str) -> RecordsAnswer:
        """Return the record with this key. A status of 404 or 410 means that there is no such record."""
        request, shape = template.fill({"key": key}), replace(self._shape, next="")
        return await self._ask(request, template.endpoint.url, read_record, shape, absent=ABSENT)

    async def bulk_look_up(self, template: RequestTemplate, keys: Sequence[str]) -> RecordsAnswer:
        """Return the records with these keys, as far as the server has them."""
        request, shape = template.fill({"keys": keys, "size": len(keys)}), replace(self._shape, next="")
        return await self._ask(request, template.endpoint.url, read_list, shape, absent=ABSENT)

    async def _ask(
        self,
        request: ApiRequest,
        home: str,
        read: ReadAnswer,
        shape: AnswerShape,
        absent: Sequence[int] = (),
    ) -> RecordsAnswer:
        cost = RequestCost()
        body = RequestBody(request.body, request.media_type) if request.media_type else None
        accept = {"Accept": _ACCEPT[self._settings.answer]}
        try:
            response = await self._client.fetch(request.url, home, lambda _: accept, cost, body=body)
            found = await self._interpret(response, read, shape, absent)
        except HostBackoffError as error:
            found = RecordsAnswer(problem=str(error), retry_after_s=error.wait_s)
        except UsageError as error:
            found = RecordsAnswer(problem=str(error), refused=True)
        return replace(
            found,
            requests=cost.requests,
            bytes=cost.bytes,
            seconds=cost.seconds,
            problem=self._client.hide(found.problem),
        )

    async def _interpret(
        self, response: FinalResponse, read: ReadAnswer, shape: AnswerShape, absent: Sequence[int]
    ) -> RecordsAnswer:
        reply, blocked = response.reply, response.blocked
        if blocked is not None:
            return RecordsAnswer(
                problem=blocked.problem,
                refused=blocked.kind == "refused",
                retry_after_s=blocked.retry_after_s,
            )
        if reply.trouble is None and reply.status in absent:
            return RecordsAnswer(total=0, status=reply.status)
        if reply.trouble is not None or reply.status not in WITH_CONTENT:
            kind, problem = classify_reply(reply, conditional=False)
            wait_s = requested_delay_s(reply, self._clock.now_s())
            return RecordsAnswer(
                problem=problem,
                refused=kind == "refused",
                retry_after_s=wait_s,
                busy=wait_s is not None,
                limited=host_condition(reply) == "limited",
                status=reply.status,
            )
        media_type = reply.headers.get("content-type", "")
        try:
            small = SMALL_BYTES if shape.format == "json" else SMALL_MARKED_UP_BYTES
            parsed = await self._parsers.parse(
                read, reply.body, media_type, shape, small=small, party=host_group(response.url)
            )
        except ParseBudgetError as error:
            return RecordsAnswer(problem=str(error))
        header = self._settings.next if self._settings.next.startswith(HEADER) else ""
        return RecordsAnswer(
            parsed.records,
            parsed.total,
            problem=parsed.problem,
            next=next_in_headers(header, reply.headers) if header else parsed.next,
            cursors=parsed.cursors,
            left_out=parsed.left_out,
            status=reply.status,
            adoptable=parsed.adoptable,
        )
