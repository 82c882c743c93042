"""Adds the pages to which polled pages link as items, before the polls that found them are committed.

The items are added first: if the process is killed in between, the poll is repeated, and its links then lead
to known items. Very many are added in parts, between which the outcomes of other polls are committed. An item
that is removed does not come back until a page links to it that did not before. What may be endless is
bounded: the links from a start page (``depth``), the pages of one form of address that lead to each other
(``chain``), and the addresses with parameters on one path (``queries``). What was left out is counted in the
store, for ``status``.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

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

LINKS_AT_ONCE = 2_000  # the store is busy with so many new ones for less than a few tenths of a second
_PATHS_KEPT, _PAUSE_S = 10_000, 0.005
# The summary of a source is read and written for each part. Two threads may add pages.
_one_part = threading.Lock()


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
        self._summary, self._room, self._full_words = FoundSummary(), 0, ""

    def _read_room(self) -> int:
        """Return how many new items may be added."""
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
        by_id = {outcome.lease.item_id: outcome for outcome in outcomes}
        parents = {page.item_id: page for page in self._store.links.by_id(list(by_id))}
        new_links = {item_id: _new_links(each, parents.get(item_id)) for item_id, each in by_id.items()}
        self._count_traps([address for each in outcomes for address in (each.links or _NO_LINKS).traps])
        reached: set[str] = set()  # keys of items that are or were added
        born = dict.fromkeys(by_id, 0)
        for number, part in enumerate(_parts(new_links)):
            if number:
                threading.Event().wait(_PAUSE_S)  # or this thread would take the store again before others
            with _one_part:
                for item_id, new in self._add_part(part, by_id, parents, reached, now_s).items():
                    born[item_id] += new
        gained: dict[int, FoundLinks] = {}
        for item_id, outcome in by_id.items():
            keys = (outcome.links or _NO_LINKS).keys
            out = {key for key in new_links[item_id] if key not in reached}
            kept = tuple(key for key in keys if key not in out) if out else keys
            is_first = item_id not in parents or not parents[item_id].readings
            gained[item_id] = FoundLinks(kept, 0 if is_first else born[item_id])
        return gained

    def _count_traps(self, addresses: Sequence[str]) -> None:
        trapped = [(trap_of(address), address) for address in addresses]
        if trapped:
            with _one_part:
                summary = read_summary(self._store, self._name)
                for reason, address in trapped:
                    summary.leave_out(reason, address)
                save_summary(self._store, self._name, summary)

    def _add_part(
        self,
        part: Mapping[int, Sequence[str]],
        outcomes: Mapping[int, Outcome],
        parents: Mapping[int, PageLinks],
        reached: set[str],
        now_s: float,
    ) -> dict[int, int]:
        """Add the pages to which the links ``part`` lead, by the id of the item that has them, and add their
        keys to ``reached``; return the numbers of new items."""
        known = self._store.items.ids(
            list(dict.fromkeys(key for keys in part.values() for key in keys)), self._name
        )
        reached.update(known)
        if any(key not in reached for keys in part.values() for key in keys):
            self._summary, self._room = read_summary(self._store, self._name), self._read_room()
            before, new, born = self._summary.pack(), dict[str, PageLinks](), dict[int, int]()
            for item_id, keys in part.items():
                parent = parents.get(item_id, PageLinks(item_id))
                chosen = self._choose(outcomes[item_id].lease.key, parent, keys, reached)
                new |= chosen
                born[item_id] = len(chosen)
                reached.update(chosen)
            self._save(new, before, now_s)
        else:
            born = {}
        self._revive(known, now_s)
        return born

    def _choose(
        self, key: str, parent: PageLinks, keys: Iterable[str], known: Collection[str]
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

    def _save(self, new: Mapping[str, PageLinks], before: bytes, now_s: float) -> None:
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
        if self._summary.pack() != before:
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


def _parts(links: Mapping[int, Sequence[str]]) -> Iterator[dict[int, list[str]]]:
    """Yield the links, by the item that has them, in parts of at most ``LINKS_AT_ONCE`` links."""
    part, size = dict[int, list[str]](), 0
    for item_id, keys in links.items():
        begin = 0
        while begin < len(keys):
            some = list(keys[begin : begin + LINKS_AT_ONCE - size])
            part[item_id], size, begin = some, size + len(some), begin + len(some)
            if size == LINKS_AT_ONCE:
                yield part
                part, size = {}, 0
    if part:
        yield part


def _path(address: str) -> str:
    return address.partition("?")[0]
