"""A search server on the web. Its requests and answers are those of ``web_api``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import Formatter

from afresh.probes.keyword_index import Keyword
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.context import SourceContext
from afresh.sources.http.urls import host_group
from afresh.sources.search.page_sizes import LearnedPageSize, without_missing_page
from afresh.sources.search.search_server import SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.sources.web_api.api_client import ApiClient
from afresh.sources.web_api.records_answer import RecordsAnswer

_SINGLE_WORD = re.compile(r"\w+")


class HttpSearchServer(SearchServer):
    """A ``SearchServer`` on the web."""

    def __init__(self, settings: SearchSettings, context: SourceContext) -> None:
        self._settings = settings
        self._client = ApiClient(settings, context)
        self._pages = settings.query_request
        self._own_columns = settings.own_columns
        self._look_up, self._bulk = settings.look_up_request, settings.bulk_request
        self._host = host_group(self._pages.request((), {}, 1, 1).url)
        self._learned_size = LearnedPageSize(settings.page_size, settings.limit)
        self.page_size = settings.page_size

    def load_page_size(self, size: int) -> None:
        self._learned_size.load(size)
        self.page_size = size

    def wait_s(self) -> float:
        return self._client.wait_s(self._host)

    def can_ask(self, keywords: Sequence[Keyword], number: int) -> bool:
        return self._pages.can_ask(tuple(keywords), number)

    async def page(self, keywords: Sequence[Keyword], number: int) -> RecordsAnswer:
        values = query_values(self._settings, self._own_columns, keywords)
        found = await self._client.page(self._pages, tuple(keywords), values, number, self._learned_size.step)
        if self._pages.way == "number":
            found = without_missing_page(found, number, self._learned_size)
        if not found.problem:
            self._learned_size.observe(number, len(found.records), found.total)
            self.page_size = self._learned_size.size
            if found.total is None and found.has_more is None:
                found = replace(found, has_more=not self._learned_size.is_last(len(found.records)))
        return found

    async def look_up(self, keys: Sequence[str]) -> RecordsAnswer:
        """Return the records with these keys. One key alone is looked up by its own address, if there is
        one."""
        if self._look_up is not None and len(keys) == 1:
            return await self._client.look_up(self._look_up, keys[0])
        assert self._bulk is not None
        return await self._client.bulk_look_up(self._bulk, keys)

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        return self._client.backoffs()

    def load_backoffs(self, backoffs: Sequence[GroupBackoff]) -> None:
        self._client.load_backoffs(backoffs)

    async def close(self) -> None:
        await self._client.close()


def query_values(
    settings: SearchSettings, own_columns: Sequence[str], keywords: Sequence[Keyword]
) -> Mapping[str, str]:
    """Return the values of the placeholders for ``keywords``: the whole query and, for each of the columns
    ``own_columns``, its own keywords, which the query then does not contain.

    >>> settings = SearchSettings(name="s", relation="r.csv", key="id", keywords=("title", "authors:;"),
    ...     server="https://a.test/?q={query}&author={authors}&start={offset}", scoped=True)
    >>> words = [Keyword("title", "web"), Keyword("authors", "junghoo cho")]
    >>> query_values(settings, ["authors"], words)
    {'query': 'title:web', 'authors': '"junghoo cho"'}
    """
    rest = [word for word in keywords if word.attribute not in own_columns]
    values = {"query": settings.joined_by.join(_term(settings, word) for word in rest)}
    for name in own_columns:
        own = [_phrase(settings.phrase, word) for word in keywords if word.attribute == name]
        values[name] = settings.joined_by.join(own)
    return values


def _term(settings: SearchSettings, keyword: Keyword) -> str:
    text = _phrase(settings.phrase, keyword)
    if settings.term:
        return settings.term.format(attribute=keyword.attribute, text=text)
    return f"{keyword.attribute}:{text}" if keyword.attribute else text


def _phrase(template: str, keyword: Keyword) -> str:
    """Return a keyword as it is asked for: one word as it stands, several words as ``template`` says. The
    characters that the template puts around them are left out within the keyword.

    >>> _phrase('"{text}"', Keyword("", 'the "deep" web')), _phrase("({text})", Keyword("", "deep web"))
    ('"the  deep  web"', '(deep web)')
    """
    if _SINGLE_WORD.fullmatch(keyword.written):
        return keyword.written
    marks = "".join(literal for literal, *_ in Formatter().parse(template)).strip()
    text = keyword.written.translate({ord(mark): " " for mark in marks})
    return template.format(text=text)
