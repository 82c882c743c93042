"""What the sources that follow links have found: pages, links that were left out, and unlinked pages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import FOUND_PAGES
from afresh.stores.store import Store
from afresh.values.formatting import format_count

_REASONS_KEPT = 50


@dataclass(slots=True)
class FoundSummary:
    """What a source found by links so far. ``left_out`` has for each reason the number of links that were
    left out, and one of their addresses. ``queries`` is the number of addresses with parameters, by path.
    ``unlinked`` is the number of pages to which no page links any more."""

    pages: int = 0
    left_out: dict[str, tuple[int, str]] = field(default_factory=dict)
    queries: dict[str, int] = field(default_factory=dict)
    unlinked: int = 0

    def leave_out(self, reason: str, address: str) -> None:
        count, example = self.left_out.get(reason, (0, address))
        if reason in self.left_out or len(self.left_out) < _REASONS_KEPT:
            self.left_out[reason] = count + 1, example

    def pack(self) -> bytes:
        return json.dumps([self.pages, self.left_out, self.queries, self.unlinked]).encode()


def read_summary(store: Store, source: str) -> FoundSummary:
    packed = store.state.get(FOUND_PAGES + source)
    if not packed:
        return FoundSummary()
    pages, left_out, queries, unlinked = json.loads(packed)
    return FoundSummary(pages, {name: tuple(pair) for name, pair in left_out.items()}, queries, unlinked)


def save_summary(store: Store, source: str, summary: FoundSummary) -> None:
    store.state.set({FOUND_PAGES + source: summary.pack()})


@dataclass(frozen=True, slots=True)
class LeftOutLinks:
    """Links that were not followed: the reason, how many there were, and the address of one."""

    reason: str
    links: int
    example: str


@dataclass(frozen=True, slots=True)
class FoundPagesStatus:
    """What a source found by following links: the number of ``pages`` that became items, how many of them no
    page links to any more, and the links that were left out."""

    source: str
    pages: int
    unlinked: int
    left_out: tuple[LeftOutLinks, ...]

    @property
    def words(self) -> str:
        """The numbers in one line for people."""
        left = "".join(
            f"; left out: {format_count(one.links, 'link')}, {one.reason}, such as {one.example}"
            for one in self.left_out
        )
        unlinked = f"; {self.unlinked:,} unlinked: no page links to them any more" if self.unlinked else ""
        return f"{format_count(self.pages, 'page')} found by links{unlinked}{left}"


def found_pages_statuses(store: Store, settings: Settings) -> tuple[FoundPagesStatus, ...]:
    found = []
    for table in settings.sources:
        name = table.settings.name
        summary = read_summary(store, name)
        if summary.pages or summary.left_out:
            left = tuple(LeftOutLinks(why, *pair) for why, pair in sorted(summary.left_out.items()))
            found.append(FoundPagesStatus(name, summary.pages, summary.unlinked, left))
    return tuple(found)
