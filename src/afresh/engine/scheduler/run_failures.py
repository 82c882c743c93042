"""What failed in a run: items, sources and hosts, each with the reason. ``run --once`` reports them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeVar

MOST_LISTED = 1_000  # a run that never ends must not collect the keys of all items


Name = TypeVar("Name", bound=Hashable)


@dataclass(slots=True)
class RunFailures:
    """The reasons of failures by item, by source (its listing could not be read) and by host (it backs off,
    so that its due items were left out). ``polled`` counts polls that did not fail, ``listed`` listings.

    >>> failures = RunFailures()
    >>> failures.record_item("web", "a", "no answer")
    >>> failures.record_item("web", "b", "")
    >>> failures.exit_code(), failures.items
    (3, {'a': 'no answer'})
    """

    polled: int = 0
    listed: int = 0
    sources: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    _items: dict[tuple[str, str], str] = field(default_factory=dict)  # by source and key

    @property
    def items(self) -> dict[str, str]:
        """The reasons by key. If items of several sources with one key failed, it is that of one of them."""
        return {key: problem for (_, key), problem in self._items.items()}

    def record_item(self, source: str, key: str, problem: str) -> None:
        """Record a poll of the item ``key`` of ``source``; it succeeded if ``problem`` is empty."""
        self.polled += not problem
        _record(self._items, (source, key), problem)

    def record_source(self, name: str, problem: str) -> None:
        """Record that the listings of the source ``name`` were read; ``problem`` is empty if all could be."""
        self.listed += not problem
        _record(self.sources, name, problem)

    def record_host(self, group: str, problem: str) -> None:
        """Record that due items of ``group`` were left out because it backs off, with the reason."""
        _record(self.hosts, group, problem)

    def exit_code(self) -> int:
        """Return 0 if nothing failed, 3 if some of it failed, and 1 if nothing that was due succeeded. If
        items were due, a listing that could be read is no success."""
        if not (self._items or self.sources or self.hosts):
            return 0
        were_due = bool(self._items or self.hosts)
        return 3 if self.polled or (self.listed and not were_due) else 1


def _record(found: dict[Name, str], name: Name, problem: str) -> None:
    if not problem:
        found.pop(name, None)
    elif len(found) < MOST_LISTED:
        found[name] = problem
