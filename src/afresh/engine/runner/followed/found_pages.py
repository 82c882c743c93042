"""Adds the pages to which polled pages link as items, before the polls that found them are committed.

The items are added first: if the process is killed in between, the poll is repeated, and its links then lead
to known items. An item that is removed does not come back until a page links to it that did not before. What
may be endless is bounded: the links from a start page (``depth``), the pages of one form of address that lead
to each other (``chain``), and the addresses with parameters on one path (``queries``). What was left out is
counted in the store, for ``status``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from afresh.engine.reporting.found_summary import FoundSummary, read_summary, save_summary
from afresh.engine.scheduler.decide import was_gone
from afresh.engine.scheduler.store_room import full_words, is_full_for_new_items
from afresh.engine.settings.tables import Settings, SourceTable
from afresh.sources.http.follow.addresses import form_of, trap_of
from afresh.sources.http.follow.settings import FollowSettings
from afresh.sources.http.settings import HttpSettings
from afresh.stores.store import Store
from afresh.values.errors import AfreshError
from afresh.values.fetched import FoundLinks
from afresh.values.items import ItemChange, NewItem
from afresh.values.outcome import Outcome
from afresh.values.stored import PageLinks

_PATHS_KEPT = 10_000


def add_found_pages(
    store: Store, settings: Settings, outcomes: Sequence[Outcome], now_s: float
) -> list[Outcome]:
    """Add the pages to which the polled pages link; return the outcomes with how many were new."""
    found = [outcome for outcome in outcomes if outcome.links is not None]
    if not found:
        return list(outcomes)
    gained: dict[int, FoundLinks] = {}
    for name in dict.fromkeys(outcome.lease.source for outcome in found):
        table = settings.source(name)
        if table is not None and isinstance(table.settings, HttpSettings):
            adder = _PageAdder(store, table, table.settings.follow, settings.store.max_size)
            gained |= adder.add([each for each in found if each.lease.source == name], now_s)
    return [
        replace(outcome, links=gained[outcome.lease.item_id])
        if outcome.links is not None and outcome.lease.item_id in gained
        else outcome
        for outcome in outcomes
    ]


class _PageAdder:
    """Adds the found pages of one source. Only links that a page did not have at its last reading are looked
    up: most changes of a page leave its links as they are, and then the store is asked for nothing else."""

    def __init__(
        self, store: Store, table: SourceTable, follow: FollowSettings, max_bytes: float = math.inf
    ) -> None:
        self._store, self._follow, self._table = store, follow, table
        self._name, self._max_bytes = table.settings.name, max_bytes
        self._before: bytes | None = None  # the summary as it was, once it is read
        self._full_words = ""

    @cached_property
    def _summary(self) -> FoundSummary:
        found = read_summary(self._store, self._name)
        self._before = found.pack()
        return found

    @cached_property
    def _room(self) -> int:
        """How many new items may be added."""
        if is_full_for_new_items(self._store, self._max_bytes):
            self._full_words = full_words(int(self._max_bytes))
            return 0
        most = self._table.settings.max_items
        self._full_words = f"the source has its max_items = {most:,} items"
        held = sum(count.items for count in self._store.items.counts() if count.source == self._name)
        return max(most - held, 0)

    def add(self, outcomes: Sequence[Outcome], now_s: float) -> dict[int, FoundLinks]:
        """Add the pages; return by item id the links with how many of them were new, without those that were
        left out: they are looked at again at the next reading."""
        parents = {
            page.item_id: page for page in self._store.links.by_id([o.lease.item_id for o in outcomes])
        }
        new_links = {o.lease.item_id: _new_links(o, parents.get(o.lease.item_id)) for o in outcomes}
        every = dict.fromkeys(key for keys in new_links.values() for key in keys)
        known = self._store.items.ids(list(every), self._name) if every else {}
        gained: dict[int, FoundLinks] = {}
        new: dict[str, PageLinks] = {}
        for outcome in outcomes:
            links, item_id = outcome.links or _NO_LINKS, outcome.lease.item_id
            parent, looked_up = parents.get(item_id, PageLinks(item_id)), new_links[item_id]
            born = self._choose(outcome.lease.key, parent, looked_up, {**known, **dict.fromkeys(new, 0)})
            new |= born
            for address in links.traps:
                self._summary.leave_out(trap_of(address), address)
            out = {key for key in looked_up if key not in known and key not in new}
            kept = tuple(key for key in links.keys if key not in out) if out else links.keys
            gained[item_id] = FoundLinks(kept, len(born) if parent.readings else 0)
        self._save(new, now_s)
        self._revive(known, now_s)
        return gained

    def _choose(
        self, key: str, parent: PageLinks, keys: Iterable[str], known: Mapping[str, int]
    ) -> dict[str, PageLinks]:
        """Return the places of those ``keys`` that become items."""
        form, chosen = form_of(key), dict[str, PageLinks]()
        for address in keys:
            if address in known:
                continue
            own = form_of(address)
            chain = parent.chain + 1 if own == form and ("#" in own or "?" in own) else 0
            reason = self._refusal(address, own, parent.depth + 1, chain)
            if reason:
                self._summary.leave_out(reason, address)
                continue
            self._room -= 1
            if "?" in own:
                self._count_query(address)
            chosen[address] = PageLinks(0, parent.depth + 1, chain)
        return chosen

    def _refusal(self, address: str, form: str, depth: int, chain: int) -> str:
        follow = self._follow
        if depth > follow.depth:
            return f"more than {follow.depth} links from a start page (depth)"
        if chain > follow.chain:
            return f"more than {follow.chain} pages such as {form} that lead to each other (chain)"
        if "?" in form and self._summary.queries.get(_path(address), 0) >= follow.queries:
            return f"more than {follow.queries:,} addresses with parameters on one path (queries)"
        return "" if self._room > 0 else self._full_words

    def _count_query(self, address: str) -> None:
        queries, path = self._summary.queries, _path(address)
        if path in queries or len(queries) < _PATHS_KEPT:
            queries[path] = queries.get(path, 0) + 1

    def _save(self, new: Mapping[str, PageLinks], now_s: float) -> None:
        items = []
        for key in new:
            try:
                group = self._table.kind.group(self._table.settings, key)
                items.append(NewItem(key, self._name, group, listed=True))
            except AfreshError as error:
                self._summary.leave_out(str(error), key)
        if items:
            self._summary.pages += self._store.items.add(items, now_s)
            ids = self._store.items.ids([item.key for item in items], self._name)
            self._store.links.add([replace(new[key], item_id=item_id) for key, item_id in ids.items()])
        if self._before is not None and self._summary.pack() != self._before:
            save_summary(self._store, self._name, self._summary)

    def _revive(self, known: Mapping[str, int], now_s: float) -> None:
        """Poll pages again that were gone and to which a page links now."""
        ids = list(known.values())
        gone = [item.id for item in self._store.items.by_id(ids) if item.status == "gone"] if ids else []
        if gone:
            self._store.items.change(gone, ItemChange(status="active", due_s=now_s))


_NO_LINKS = FoundLinks(())


def _new_links(outcome: Outcome, parent: PageLinks | None) -> tuple[str, ...]:
    """Return the links that the page did not have at its last reading. If it was gone meanwhile, these are
    all of them, because pages to which only this one linked may have been removed."""
    keys = (outcome.links or _NO_LINKS).keys
    if parent is None or not parent.links or was_gone(outcome.lease):
        return keys
    before = frozenset(parent.links)
    return tuple(key for key in keys if key not in before)


def _path(address: str) -> str:
    return address.partition("?")[0]
