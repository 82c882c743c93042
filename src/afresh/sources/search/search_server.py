"""A server with a search box, as the ``search`` source uses it: pages of queries, and single records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from afresh.probes.keyword_index import Keyword
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.context import SourceContext
from afresh.sources.search.relation import LocalRelation
from afresh.sources.search.settings import SearchSettings


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """One record of an answer: its key as text, and its fields by name."""

    key: str
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchResults:
    """One answer. If it has a ``problem``, it holds no records; ``requests`` counts what was sent. ``total``
    is how many records match altogether, None if the server does not say. ``refused``: we may not ask.
    ``retry_after_s``: the server must be left alone that long; ``busy``: it said so itself."""

    records: tuple[SearchRecord, ...] = ()
    total: int | None = None
    requests: int = 1
    bytes: int = 0
    seconds: float = 0.0
    problem: str = ""
    refused: bool = False
    retry_after_s: float | None = None
    busy: bool = False


class SearchServer(ABC):
    """Answers one request at a time, each admitted once; raises nothing for what a remote system does."""

    @abstractmethod
    async def page(self, keywords: Sequence[Keyword], number: int) -> SearchResults:
        """Return page ``number``, from 1, of the records that match all ``keywords``."""

    @abstractmethod
    async def look_up(self, key: str) -> SearchResults:
        """Return the record with this key, or none."""

    def wait_s(self) -> float:
        """Return how long until the next request may start."""
        return 0.0

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return the back-offs that must outlive the process."""
        return ()

    def load_backoffs(self, backoffs: Sequence[GroupBackoff]) -> None:
        """Take over back-offs of an earlier process."""
        del backoffs

    async def close(self) -> None:
        return


def make_server(settings: SearchSettings, context: SourceContext, relation: LocalRelation) -> SearchServer:
    """Build the server that the settings name; a file is searched for the keywords of ``relation``."""
    if settings.over_http:
        from afresh.sources.http.settings import secret_proxy
        from afresh.sources.search.http_server import HttpSearchServer

        proxy = secret_proxy(settings.http, context.resolver)
        fetcher = context.new_fetcher(settings.allow_private, proxy, context.clock)
        return HttpSearchServer(settings, context, fetcher)
    if settings.in_database:
        from afresh.sources.search.sql_server import SqlSearchServer

        return SqlSearchServer(settings, context)
    from afresh.sources.search.file_server import FileSearchServer

    return FileSearchServer(settings, context, relation.index)
