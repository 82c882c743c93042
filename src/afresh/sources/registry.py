"""The built-in kinds of source, and how a source is built from its ``[[source]]`` table in ``afresh.toml``.

``engine.plugins`` adds the kinds that other packages offer by entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic

from afresh.sources.context import SourceContext
from afresh.sources.http.urls import host_group
from afresh.sources.settings import Settings
from afresh.sources.source import Source


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[Settings]):
    """A kind of source: the class of its settings, and two functions. ``build(settings, context)`` returns a
    source. ``group(settings, key)`` returns the same as ``Source.group``, but needs no source. It raises
    ``UsageError`` for a key that can never be polled."""

    settings: type[Settings]
    build: Callable[[Settings, SourceContext], Source]
    group: Callable[[Settings, str], str] = lambda settings, _: settings.name


class _BuiltInKinds(Mapping[str, SourceKind[Any]]):
    """The built-in kinds by name. The settings of a kind are imported when the kind is first asked for, and
    its source when it is built, because most projects use one kind."""

    def __init__(self) -> None:
        self._loaded: dict[str, SourceKind[Any]] = {}

    def __getitem__(self, name: str) -> SourceKind[Any]:
        if name not in self._loaded:
            settings, source = _PLACES[name]
            self._loaded[name] = SourceKind(
                _load(settings), _build_later(source), *([_GROUPS[name]] if name in _GROUPS else [])
            )
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in _PLACES

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


def _load(place: str) -> Any:
    """Return what ``place`` (``module:name``) names, below this package."""
    module, name = place.split(":")
    return getattr(import_module(f"afresh.sources.{module}"), name)


def _build_later(place: str) -> Callable[[Any, SourceContext], Source]:
    """Return a function that loads the function at ``place`` when it is called, and then calls it."""

    def build(settings: Any, context: SourceContext) -> Source:
        source: Source = _load(place)(settings, context)
        return source

    return build


# Where the settings and the source of each kind are defined.
_PLACES: Mapping[str, tuple[str, str]] = {
    "api": ("api.settings:ApiSettings", "api.source:ApiSource"),
    "http": ("http.settings:HttpSettings", "http.source:build_http_source"),
    "python": ("python.settings:PythonSettings", "python.source:PythonSource"),
    "search": ("search.settings:SearchSettings", "search.source:SearchSource"),
    "sql": ("sql.settings:SqlSettings", "sql.source:SqlSource"),
    "view": ("views.settings:ViewSettings", "views.source:ViewSource"),
}
# The items of other kinds are one group for each source.
_GROUPS: Mapping[str, Callable[[Any, str], str]] = {
    "http": lambda _, key: host_group(key),
    "python": lambda settings, _: settings.call,
}
BUILT_IN: Mapping[str, SourceKind[Any]] = _BuiltInKinds()
