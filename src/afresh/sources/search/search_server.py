"""The interface of search servers: they return pages of query results, and single records by key.

A file of records can take the place of a server, for planning and simulation. It is read again when it has
changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from afresh.probes.keyword_index import Keyword, KeywordIndex, index_corpus
from afresh.probes.rounds import IndexServer
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.context import SourceContext
from afresh.sources.search.relation import LocalRelation, TextColumns, read_columns
from afresh.sources.search.settings import SearchSettings
from afresh.sources.sql.connections import KeyedRecord
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.values.errors import InputError


class SearchServer(ABC):
    """Answers one request at a time. Problems are returned in ``RecordsAnswer.problem`` and not raised. Every
    request awaits ``admit`` once. ``page_size`` is the number of results on a full page."""

    page_size: int

    def load_page_size(self, size: int) -> None:
        """Load the page size that an earlier process learned."""
        del size

    @abstractmethod
    async def page(self, keywords: Sequence[Keyword], number: int) -> RecordsAnswer:
        """Return page ``number``, counted from 1, of the records that match all ``keywords``."""

    @abstractmethod
    async def look_up(self, keys: Sequence[str]) -> RecordsAnswer:
        """Return the records with these keys, as far as the server has them. There are at most as many keys
        as the settings allow in one request (``keys_at_once``)."""

    def can_ask(self, keywords: Sequence[Keyword], number: int) -> bool:
        """Return whether page ``number`` of a query can be requested now. Servers that name the next page by
        a token can only be asked for a page after the page before it."""
        del keywords, number
        return True

    def wait_s(self) -> float:
        """Return the seconds until the next request may start."""
        return 0.0

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return the back-offs that must be saved for the next process."""
        return ()

    def load_backoffs(self, backoffs: Sequence[GroupBackoff]) -> None:
        """Load the back-offs of an earlier process."""
        del backoffs

    async def close(self) -> None:
        return


def make_server(settings: SearchSettings, context: SourceContext, relation: LocalRelation) -> SearchServer:
    """Return the search server that the settings name. In a file, keywords of ``relation`` are searched."""
    if settings.over_http:
        from afresh.sources.search.http_server import HttpSearchServer

        return HttpSearchServer(settings, context)
    if settings.in_database:
        from afresh.sources.search.sql_server import SqlSearchServer

        return SqlSearchServer(settings, context)
    return FileSearchServer(settings, context, relation.index)


class FileSearchServer(SearchServer):
    """A ``SearchServer`` that searches a file of records. Results have the sequence of the file."""

    def __init__(self, settings: SearchSettings, context: SourceContext, relation: KeywordIndex) -> None:
        self._settings, self._context = settings, context
        self.page_size = settings.page_size
        self._relation = relation
        self._numbers = {keyword: number for number, keyword in enumerate(relation.keywords)}
        self._stamp: tuple[int, int] | None = None

    async def page(self, keywords: Sequence[Keyword], number: int) -> RecordsAnswer:
        await self._context.admit(self._settings.name)
        try:
            self._read()
        except InputError as error:
            return RecordsAnswer(problem=str(error))
        found = self._server.page([self._numbers[keyword] for keyword in keywords], number)
        return RecordsAnswer(tuple(self._record(key) for key in found.keys), found.total)

    async def look_up(self, keys: Sequence[str]) -> RecordsAnswer:
        await self._context.admit(self._settings.name)
        try:
            self._read()
        except InputError as error:
            return RecordsAnswer(problem=str(error))
        found = tuple(self._record(key) for key in keys if key in self._rows)
        return RecordsAnswer(found, len(found))

    def _read(self) -> None:
        settings = self._settings
        stamp = file_stamp(settings.place)
        if stamp is not None and stamp == self._stamp:
            return
        attributes = settings.attributes
        names = [settings.key, *(attribute.name for attribute in attributes), *settings.fields]
        self._columns: TextColumns = read_columns(settings.place, list(dict.fromkeys(names)))
        keys = self._columns.texts[settings.key]
        index = index_corpus(self._relation, self._columns.texts, attributes, scoped=settings.scoped)
        self._server = IndexServer(index, keys, settings.page_size, settings.limit)
        self._rows = {key: row for row, key in enumerate(keys)}
        self._stamp = stamp

    def _record(self, key: str) -> KeyedRecord:
        row, names = self._rows[key], self._settings.fields or self._columns.texts
        return KeyedRecord(key, {name: self._columns.texts[name][row] for name in names})


def file_stamp(place: str) -> tuple[int, int] | None:
    """Return a tuple (modification time, size) that changes when a file is written; None without a file."""
    try:
        found = Path(place.partition("#")[0]).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def sample_index(settings: SearchSettings, relation: KeywordIndex) -> KeywordIndex:
    """Return an index of the file ``records_like`` by the keywords of ``relation``. Without that file, return
    ``relation`` itself."""
    if not settings.records_like:
        return relation
    attributes = settings.attributes
    columns = read_columns(settings.records_like, [attribute.name for attribute in attributes])
    return index_corpus(relation, columns.texts, attributes, scoped=settings.scoped)
