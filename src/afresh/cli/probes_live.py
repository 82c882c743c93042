"""A live server for ``afresh probes``: asked over HTTP or in a database, politely, one request at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from afresh.probes.keyword_index import KeywordIndex
from afresh.probes.probe_server import ProbeAnswer, ServerStoppedError
from afresh.sources.context import SourceContext
from afresh.sources.search.relation import LocalRelation
from afresh.sources.search.search_server import SearchRecord, SearchResults, SearchServer, make_server
from afresh.sources.search.settings import SearchSettings
from afresh.sources.settings import read_settings

_NARROW = 4  # keywords of the query that stands for a look-up
_RETRIES = 2
_FIRST_REST = "1s"  # somebody waits for the outcome: what the server itself asks for counts
_PATIENCE_S = 60.0  # the longest that a server's wish to be left alone is waited out


def is_live(server: str) -> bool:
    """Whether the server is to be asked, rather than read as a file."""
    return "://" in server or server.startswith(("sqlite:", "env:"))


class LiveServer:
    """See ``probes.server.Server``. What the server refuses ends the asking: ``trouble`` says it in words."""

    def __init__(self, table: dict[str, Any], relation: KeywordIndex, keys: Sequence[str]) -> None:
        given = {"name": "--server", "kind": "search", "first_rest": _FIRST_REST, **table}
        settings = read_settings(SearchSettings, given)
        self._settings, self._relation = settings, relation
        self.page_size = settings.page_size
        self._places = {key: place for place, key in enumerate(keys)}
        self.trouble = ""
        self._answered = False

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._server: SearchServer = self._runner.run(self._opened())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._server.close())
        self._runner.close()

    async def _opened(self) -> SearchServer:
        import numpy as np

        whole = LocalRelation(list(self._places), self._relation, np.ones(len(self._places)), self._places)
        return make_server(self._settings, SourceContext(resolver=os.environ.get), whole)

    def page(self, keywords: Sequence[int], number: int) -> ProbeAnswer:
        """See ``Server``."""
        words = [self._relation.keywords[word] for word in keywords]
        found = self._runner.run(self._patiently(lambda: self._server.page(words, number)))
        return ProbeAnswer(found.total, _keys(found))

    def look_up(self, key: str) -> ProbeAnswer:
        """See ``Server``. A server that finds no keys is asked for the record's rarest keywords."""
        if not self._settings.finds_keys:
            words = self._relation.by_tuple.row(self._places[key]).tolist()
            rarest = sorted(words, key=lambda word: self._relation.by_keyword.sizes[word])[:_NARROW]
            return self.page(rarest, 1) if rarest else ProbeAnswer(0, ())
        found = self._runner.run(self._patiently(lambda: self._server.look_up(key)))
        return ProbeAnswer(found.total, _keys(found))

    async def _patiently(self, ask: Any) -> SearchResults:
        for attempt in range(_RETRIES + 1):
            found: SearchResults = await ask()
            self._answered |= found.busy or not found.problem
            if not found.problem:
                return found
            wait_s = found.retry_after_s or 0.0
            # Who never answered was perhaps never there: a wrong address is said at once.
            hopeless = found.refused or not self._answered
            if hopeless or attempt == _RETRIES or not 0 < wait_s <= _PATIENCE_S:
                break
            await asyncio.sleep(wait_s)
        self.trouble = found.problem
        raise ServerStoppedError(found.problem)


def _keys(found: SearchResults) -> tuple[str, ...]:
    """The keys of the records; a record that is on a page twice counts once."""
    different: list[SearchRecord] = []
    for record in found.records:
        if record not in different:
            different.append(record)
    return tuple(record.key for record in different)
