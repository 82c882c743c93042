"""The kinds of source there are, and how one is made from its ``[[source]]`` table.

A kind from another package is one more entry of the table that ``make_source`` is given: whoever looks up
entry points passes ``{**BUILT_IN, **found}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic

from afresh.sources.settings import HttpSettings, PythonSettings, Settings, read_settings
from afresh.sources.source import Source
from afresh.sources.surroundings import Surroundings
from afresh.values.errors import one_of


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[Settings]):
    """A kind of source: the model of its settings, and what builds one from them."""

    settings: type[Settings]
    build: Callable[[Settings, Surroundings], Source]


def _http(settings: HttpSettings, around: Surroundings) -> Source:
    from afresh.sources.aiohttp_fetcher import AiohttpFetcher
    from afresh.sources.http_secrets import secret_proxy
    from afresh.sources.http_source import HttpSource

    proxy = secret_proxy(settings, around.resolver)
    fetcher = AiohttpFetcher(allow_private=settings.allow_private, proxy=proxy, clock=around.clock)
    return HttpSource(settings, around, fetcher)


def _python(settings: PythonSettings, around: Surroundings) -> Source:
    from afresh.sources.python_source import PythonSource

    return PythonSource(settings, around)


BUILT_IN: Mapping[str, SourceKind[Any]] = MappingProxyType(
    {"http": SourceKind(HttpSettings, _http), "python": SourceKind(PythonSettings, _python)}
)


def make_source(
    table: Mapping[str, Any], around: Surroundings, kinds: Mapping[str, SourceKind[Any]] = BUILT_IN
) -> Source:
    """The source that a table of settings describes; wrong settings are refused in words.

    >>> make_source({"name": "web", "kind": "htpp"}, Surroundings())
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown kind of source 'htpp': did you mean 'http'? One of http, python
    """
    kind = kinds[one_of("kind of source", str(table.get("kind", "http")), kinds)]
    return kind.build(read_settings(kind.settings, table), around)
