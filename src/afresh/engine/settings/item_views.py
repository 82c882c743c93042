"""Item views: the ``[[view]]`` tables of ``afresh.toml``. A view is made from items, and is stale if one is.

An item view (the web view of Zhang, Tang, Yang & Li 2007, §4) is anything that the user builds from copies of
several items, such as a page that joins them. It is stale as soon as one of its items has changed at its
source since the last poll of that item. This differs from a source of kind ``view``, whose items are the
materialised views of a database.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from afresh.engine.settings.problems import Lines, find_line, lines_of_table
from afresh.values.errors import UsageError, WrongSettingsError, did_you_mean

HookSetting: TypeAlias = tuple[str, ...] | str
"""A hook: a command as a tuple of words, or ``module:function``."""

_KEYS = ("name", "items", "weight", "on_stale")


@dataclass(frozen=True, slots=True)
class ItemView:
    """One ``[[view]]``. ``weight`` is added to the weight of each of its ``items``, which are keys.
    ``on_stale`` is the hook that is called when a poll finds a change of one of them. ``lines`` has the line
    of each item in the settings file, for error messages."""

    name: str
    items: tuple[str, ...]
    weight: float = 0.0
    on_stale: HookSetting | None = None
    lines: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ItemViews:
    """All item views of the settings, also found by the keys of their items.

    >>> views = ItemViews((ItemView("front", ("a", "b"), weight=2.0), ItemView("all", ("b",), weight=1.0)))
    >>> [view.name for view in views.of_item("b")], views.added_weights()
    (['front', 'all'], {'a': 2.0, 'b': 3.0})
    """

    tables: tuple[ItemView, ...] = ()
    _by_item: dict[str, tuple[ItemView, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        found: dict[str, tuple[ItemView, ...]] = {}
        for view in self.tables:
            for key in view.items:
                found[key] = (*found.get(key, ()), view)
        object.__setattr__(self, "_by_item", found)

    def view(self, name: str) -> ItemView | None:
        return next((view for view in self.tables if view.name == name), None)

    def of_item(self, key: str) -> tuple[ItemView, ...]:
        """Return the views that are made from the item ``key``, in the order of the settings."""
        return self._by_item.get(key, ())

    def added_weights(self) -> dict[str, float]:
        """Return by key the weight that views add to each item; items to which they add none are left out.

        A view of weight w is fresh only if all its items are: F_view ≥ 1 − Σ(1 − F_item). Adding w to each
        item therefore raises this lower bound of w·F_view, and nearly w·F_view itself while copies are fresh.
        """
        added = {key: sum(view.weight for view in views) for key, views in self._by_item.items()}
        return {key: weight for key, weight in added.items() if weight > 0}

    def has_hooks(self) -> bool:
        return any(view.on_stale for view in self.tables)


def parse_item_views(tables: object, text: str, name: str) -> ItemViews:
    """Check the ``[[view]]`` tables of a settings file. ``text`` is the text of the file and ``name`` its
    name, for error messages."""
    if not (isinstance(tables, list) and all(isinstance(each, dict) for each in tables)):
        place = f"{name}, line {_lines(text, 0)[0][0]}"
        raise UsageError(f"{place}: there may be several views: write [[view]]")
    views: list[ItemView] = []
    problems: list[str] = []
    for number, table in enumerate(tables):
        try:
            view = _parse_view(table, _lines(text, number), name)
        except UsageError as error:
            problems.append(str(error))
            continue
        if any(view.name == other.name for other in views):
            line = find_line(_lines(text, number), r"\s*name\s*=")
            problems.append(f"{name}, line {line}: two views are named {view.name!r}: give each its own name")
        views.append(view)
    if problems:
        raise WrongSettingsError(problems)
    return ItemViews(tuple(views))


def _parse_view(table: Mapping[str, Any], lines: Lines, file_name: str) -> ItemView:
    named = table.get("name")
    who = f"view {named!r}" if isinstance(named, str) and named else "view"

    def refuse(problem: str, pattern: str = r"\s*\[\[") -> UsageError:
        return UsageError(f"{file_name}, line {find_line(lines, pattern)}: {who}: {problem}")

    for key in table:
        if key not in _KEYS:
            problem = f"unknown setting {key!r}{did_you_mean(key, _KEYS)}"
            raise refuse(problem, rf"\s*{re.escape(key)}\s*=")
    if not isinstance(named, str) or not named.strip():
        raise refuse('give it a name, such as name = "front page"', r"\s*name\s*=")
    items = table.get("items")
    if not (isinstance(items, list) and items and all(isinstance(key, str) and key for key in items)):
        raise refuse("items must be a list of the keys of one item at least", r"\s*items\s*=")
    at = _lines_of_items(lines)
    for key, times in Counter(items).items():
        if times > 1:
            raise UsageError(f"{file_name}, line {at.get(key, lines)[-1][0]}: {who}: it names {key!r} twice")
    weight = table.get("weight", 0.0)
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not (is_number and 0 <= weight < math.inf):
        raise refuse(f"weight is {weight!r}: must be a number from 0 on", r"\s*weight\s*=")
    hook = table.get("on_stale")
    if hook is not None and not is_hook(hook):
        raise refuse("on_stale must be a list of words or 'module:function'", r"\s*on_stale\s*=")
    return ItemView(
        named,
        tuple(items),
        float(weight),
        tuple(hook) if isinstance(hook, list) else hook,
        tuple(at.get(key, lines)[0][0] for key in items),
    )


def is_hook(hook: object) -> bool:
    """Return whether a value of the settings is a hook: ``module:function``, or a list of words."""
    if isinstance(hook, str):
        return re.fullmatch(r"[\w.]+:\w+", hook) is not None
    return isinstance(hook, list) and bool(hook) and all(isinstance(word, str) for word in hook)


def _lines(text: str, number: int) -> Lines:
    return lines_of_table(text, "view", number) or [(1, "")]


def _lines_of_items(lines: Lines) -> dict[str, list[tuple[int, str]]]:
    """Return by text the lines in which a text stands between quotation marks."""
    found: dict[str, list[tuple[int, str]]] = {}
    for at, line in lines:
        for double, single in re.findall(r"\"([^\"]*)\"|'([^']*)'", line):
            found.setdefault(double or single, []).append((at, line))
    return found
