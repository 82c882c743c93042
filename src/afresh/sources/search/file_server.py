"""A file of records as a search server, for planning and simulation; it is read again when it has changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from afresh.probes.keyword_index import Keyword, KeywordIndex, index_corpus
from afresh.probes.probe_server import IndexServer
from afresh.sources.context import SourceContext
from afresh.sources.search.relation import TextColumns, read_columns
from afresh.sources.search.search_server import SearchRecord, SearchResults, SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.values.errors import InputError


class FileSearchServer(SearchServer):
    """See ``SearchServer``. Results are in the order of the file."""

    def __init__(self, settings: SearchSettings, context: SourceContext, relation: KeywordIndex) -> None:
        self._settings, self._context = settings, context
        self._relation = relation
        self._numbers = {keyword: number for number, keyword in enumerate(relation.keywords)}
        self._stamp: tuple[int, int] | None = None

    async def page(self, keywords: Sequence[Keyword], number: int) -> SearchResults:
        await self._context.admit(self._settings.name)
        try:
            self._read()
        except InputError as error:
            return SearchResults(problem=str(error))
        found = self._server.page([self._numbers[keyword] for keyword in keywords], number)
        return SearchResults(tuple(self._record(key) for key in found.keys), found.total)

    async def look_up(self, key: str) -> SearchResults:
        await self._context.admit(self._settings.name)
        try:
            self._read()
        except InputError as error:
            return SearchResults(problem=str(error))
        return SearchResults((self._record(key),), 1) if key in self._rows else SearchResults(total=0)

    def _read(self) -> None:
        settings = self._settings
        stamp = file_stamp(settings.server)
        if stamp is not None and stamp == self._stamp:
            return
        attributes = settings.attributes
        names = [settings.key, *(attribute.name for attribute in attributes), *settings.fields]
        self._columns: TextColumns = read_columns(settings.server, list(dict.fromkeys(names)))
        keys = self._columns.texts[settings.key]
        index = index_corpus(self._relation, self._columns.texts, attributes, scoped=settings.scoped)
        self._server = IndexServer(index, keys, settings.page_size, settings.limit)
        self._rows = {key: row for row, key in enumerate(keys)}
        self._stamp = stamp

    def _record(self, key: str) -> SearchRecord:
        row, names = self._rows[key], self._settings.fields or self._columns.texts
        return SearchRecord(key, {name: self._columns.texts[name][row] for name in names})


def file_stamp(place: str) -> tuple[int, int] | None:
    """Return time and size of a file, which show that it was written; None if there is no file."""
    try:
        found = Path(place.partition("#")[0]).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def sample_index(settings: SearchSettings, relation: KeywordIndex) -> KeywordIndex:
    """Index records like those of the server by the relation's keywords, or else the relation itself."""
    if not settings.records_like:
        return relation
    attributes = settings.attributes
    columns = read_columns(settings.records_like, [attribute.name for attribute in attributes])
    return index_corpus(relation, columns.texts, attributes, scoped=settings.scoped)
