"""The built-in kinds of source, and how a source is built from its ``[[source]]`` table in ``afresh.toml``.

``engine.plugins`` adds the kinds that other packages offer by entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic

from afresh.sources.api.settings import ApiSettings
from afresh.sources.context import SourceContext
from afresh.sources.http.settings import HttpSettings
from afresh.sources.http.urls import host_group
from afresh.sources.python.settings import PythonSettings
from afresh.sources.search.settings import SearchSettings
from afresh.sources.settings import Settings
from afresh.sources.source import Source
from afresh.sources.sql.settings import SqlSettings
from afresh.sources.views.settings import ViewSettings


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[Settings]):
    """A kind of source: the class of its settings, and two functions. ``build(settings, context)`` returns a
    source. ``group(settings, key)`` returns the same as ``Source.group``, but needs no source. It raises
    ``UsageError`` for a key that can never be polled."""

    settings: type[Settings]
    build: Callable[[Settings, SourceContext], Source]
    group: Callable[[Settings, str], str] = lambda settings, _: settings.name


def _load_later(module: str, builder: str) -> Callable[[Any, SourceContext], Source]:
    """Return a function that imports ``module`` when it is called, and then calls its function ``builder``.
    Most runs use one kind of source, so they do not import the modules of the others."""

    def build(settings: Any, context: SourceContext) -> Source:
        source: Source = getattr(import_module(f"afresh.sources.{module}"), builder)(settings, context)
        return source

    return build


BUILT_IN: Mapping[str, SourceKind[Any]] = MappingProxyType(
    {
        "api": SourceKind(ApiSettings, _load_later("api.source", "ApiSource")),
        "http": SourceKind(
            HttpSettings, _load_later("http.source", "build_http_source"), lambda _, key: host_group(key)
        ),
        "python": SourceKind(
            PythonSettings, _load_later("python.source", "PythonSource"), lambda settings, _: settings.call
        ),
        "search": SourceKind(SearchSettings, _load_later("search.source", "SearchSource")),
        "sql": SourceKind(SqlSettings, _load_later("sql.source", "SqlSource")),
        "view": SourceKind(ViewSettings, _load_later("views.source", "ViewSource")),
    }
)
