"""Kinds of sources and estimators of other installed packages, found by their entry points.

A package declares them in its ``pyproject.toml``:

    [project.entry-points."afresh.sources"]
    carrier-pigeon = "pigeons:KIND"          # a sources.registry.SourceKind

    [project.entry-points."afresh.estimators"]
    oracle-bones = "bones:ESTIMATOR"         # a rates.estimator.Estimator

The name can then be used like a built-in one. A package is imported only when its name is used, so that a
broken package affects only those who use it. Built-in names cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from afresh.sources.registry import BUILT_IN, SourceKind
from afresh.values.errors import UsageError

if TYPE_CHECKING:
    from afresh.rates.estimator import Estimator

T = TypeVar("T")

SOURCES_GROUP, ESTIMATORS_GROUP = "afresh.sources", "afresh.estimators"
"""The groups of entry points with which other packages add kinds of sources and estimators."""


class Plugins(Mapping[str, T], Generic[T]):
    """A mapping from names to objects: built-in ones (``own``), and those of other packages with an entry
    point in ``group``. The latter are loaded at their first use, and must have the attributes ``has``.

    >>> Plugins("afresh.nothing", {"own": 1}, has=())["own"]
    1
    """

    def __init__(self, group: str, own: Mapping[str, T], *, has: tuple[str, ...]) -> None:
        self._group, self._own, self._has = group, own, has
        self._loaded: dict[str, T] = {}
        self._entries: dict[str, list[EntryPoint]] | None = None

    def __getitem__(self, name: str) -> T:
        if name in self._own:
            return self._own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name, self._found()[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in self._found() if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._found()

    def _found(self) -> dict[str, list[EntryPoint]]:
        """Return the entry points of the group by name. They are read only once, because this is slow."""
        if self._entries is None:
            self._entries = {}
            for entry in entry_points(group=self._group):
                self._entries.setdefault(entry.name, []).append(entry)
        return self._entries

    def _load(self, name: str, entries: list[EntryPoint]) -> T:
        origins = sorted(
            {f"{each.dist.name} {each.dist.version}" if each.dist else each.value for each in entries}
        )
        if len(origins) > 1:
            both = " and ".join(origins)
            raise UsageError(f"{name!r} ({self._group}) comes from {both}: uninstall one of them")
        who = f"{name!r} ({self._group}, from {origins[0]})"
        try:
            thing = entries[0].load()
        except Exception as error:  # noqa: BLE001  # an import of foreign code may raise anything
            raise UsageError(f"{who} cannot be loaded: {type(error).__name__}: {error}") from None
        missing = [each for each in self._has if not hasattr(thing, each)]
        if missing:
            raise UsageError(f"{who} is a {type(thing).__name__} without {', '.join(missing)}")
        return thing  # type: ignore[no-any-return]


def source_kinds() -> Mapping[str, SourceKind[Any]]:
    return Plugins(SOURCES_GROUP, BUILT_IN, has=("settings", "build", "group"))


def estimators() -> Mapping[str, Estimator[Any]]:
    from afresh.rates.estimator import ESTIMATORS

    return Plugins(ESTIMATORS_GROUP, ESTIMATORS, has=("start", "update", "rate", "interval"))
