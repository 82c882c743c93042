"""The kinds of source there are, and how one is made from its ``[[source]]`` table.

A kind from another package is found by its entry point; ``engine.plugins`` shows both as one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic

from afresh.sources.context import SourceContext
from afresh.sources.search.settings import SearchSettings
from afresh.sources.settings import (
    HttpSettings,
    PythonSettings,
    Settings,
    SourceSettings,
)
from afresh.sources.source import Source
from afresh.sources.sql.settings import SqlSettings
from afresh.sources.views.settings import ViewSettings


def _whole_source(settings: SourceSettings, key: str) -> str:
    """All items of a source are one group."""
    del key
    return settings.name


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[Settings]):
    """A kind of source: the model of its settings, what builds one from them, and which keys go together.

    ``group(settings, key)`` is the politeness group of an item, the same that the source itself would say;
    it refuses keys that could never be polled.
    """

    settings: type[Settings]
    build: Callable[[Settings, SourceContext], Source]
    group: Callable[[Settings, str], str] = _whole_source


def _http(settings: HttpSettings, context: SourceContext) -> Source:
    from afresh.sources.http.aiohttp_fetcher import AiohttpFetcher
    from afresh.sources.http.secret_headers import secret_proxy
    from afresh.sources.http.source import HttpSource

    proxy = secret_proxy(settings, context.resolver)
    fetcher = AiohttpFetcher(allow_private=settings.allow_private, proxy=proxy, clock=context.clock)
    return HttpSource(settings, context, fetcher)


def _host(settings: HttpSettings, key: str) -> str:
    from afresh.sources.http.urls import host_group

    del settings
    return host_group(key)


def _python(settings: PythonSettings, context: SourceContext) -> Source:
    from afresh.sources.python.source import PythonSource

    return PythonSource(settings, context)


def _sql(settings: SqlSettings, context: SourceContext) -> Source:
    from afresh.sources.sql.source import SqlSource

    return SqlSource(settings, context)


def _search(settings: SearchSettings, context: SourceContext) -> Source:
    from afresh.sources.search.source import SearchSource

    return SearchSource(settings, context)


def _view(settings: ViewSettings, context: SourceContext) -> Source:
    from afresh.sources.views.source import ViewSource

    return ViewSource(settings, context)


BUILT_IN: Mapping[str, SourceKind[Any]] = MappingProxyType(
    {
        "http": SourceKind(HttpSettings, _http, _host),
        "python": SourceKind(PythonSettings, _python, lambda settings, _key: settings.call),
        "search": SourceKind(SearchSettings, _search),
        "sql": SourceKind(SqlSettings, _sql),
        "view": SourceKind(ViewSettings, _view),
    }
)
