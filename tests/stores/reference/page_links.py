"""The links of pages in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.stores.reference.data import ReferenceData, ReferenceGroup

from afresh.stores.store import StoredLinks
from afresh.values.fetched import FoundLinks
from afresh.values.stored import PageLinks


class ReferenceLinks(ReferenceGroup, StoredLinks):
    def __init__(self, data: ReferenceData) -> None:
        super().__init__(data)
        self._pages: dict[int, PageLinks] = {}

    def add(self, pages: Sequence[PageLinks]) -> None:
        with self._data:
            for new in pages:
                if new.item_id in self._data.records:
                    old = self._pages.get(new.item_id, new)
                    depth, chain = min(old.depth, new.depth), min(old.chain, new.chain)
                    self._pages[new.item_id] = replace(old, depth=depth, chain=chain)

    def by_id(self, ids: Sequence[int]) -> list[PageLinks]:
        return [page for page in self.read() if page.item_id in ids]

    def read(self) -> Iterator[PageLinks]:
        with self._data:
            known = [self._pages[item_id] for item_id in sorted(self._pages) if item_id in self._data.records]
        return iter(known)

    def gaining(self) -> list[PageLinks]:
        return [replace(page, links=None) for page in self.read() if page.gained]

    def unlinked(self) -> list[PageLinks]:
        return [replace(page, links=None) for page in self.read() if page.unlinked_s is not None]

    def mark_unlinked(self, ids: Sequence[int], time_s: float | None) -> None:
        with self._data:
            for item_id in ids:
                if item_id in self._pages:
                    self._pages[item_id] = replace(self._pages[item_id], unlinked_s=time_s)

    def keep(self, item_id: int, found: FoundLinks) -> None:
        old = self._pages.get(item_id)
        if old is None:
            self._pages[item_id] = PageLinks(item_id, readings=1, links=found.keys)
            return
        readings, gained = old.readings + 1, old.gained + found.gained
        self._pages[item_id] = replace(old, readings=readings, gained=gained, links=found.keys)
