"""Hints about items whose changes nearly all lie in one small part, and the settings that leave it out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from afresh.sources.changing_part import FEWEST, ChangingPart, find_changing_part
from afresh.stores.store import Store
from afresh.values.items import Item, ItemQuery

_ITEMS_READ, _ITEMS_LOOKED_AT = 50, 8  # of those that were found changed last
_LARGEST = 500_000  # bytes of a copy; larger ones would take too long
_HINTS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class NoiseHint:
    """Items of ``source`` change nearly always in the same small part: ``items`` of ``looked_at`` items, such
    as ``example``. ``line`` of the settings leaves this part out of comparisons."""

    source: str
    line: str
    items: int
    looked_at: int
    example: str

    @property
    def words(self) -> str:
        """The hint as a sentence."""
        who = f"{self.items} of {self.looked_at} items that change often, such as {self.example},"
        return f"{who} change nearly always in one small part; leave it out by {self.line}"


def changing_part_of(store: Store, item: Item) -> ChangingPart | None:
    """Return the small part in which nearly all of the last changes of an item lie, or None. The stored
    versions of its copy are compared."""
    if item.changes < FEWEST:
        return None
    versions = store.copies.versions(item.id)[::-1]
    if len(versions) <= FEWEST or max(version.size for version in versions) > _LARGEST:
        return None
    copies = [store.copies.get(item.id, version.number) for version in versions]
    contents = [copy.content for copy in copies if copy is not None]
    return find_changing_part(contents, versions[-1].media_type)


def describe_part(part: ChangingPart) -> str:
    """Return a sentence that proposes the setting by which a changing part is left out."""
    return f"{part.changes} of its last {part.of} changes lie in one small part; leave it out by {part.line}"


def find_noise_hints(store: Store) -> tuple[NoiseHint, ...]:
    """Return hints about the items that were found changed last; of these only some are looked at."""
    page = store.items.page(ItemQuery(sort="changed", descending=True), _ITEMS_READ)
    often = sorted(page.items, key=lambda item: -item.changes / max(item.polls, 1))
    looked_at: Counter[str] = Counter()
    found: dict[tuple[str, str], list[str]] = {}
    for item in [item for item in often if item.changes >= FEWEST][:_ITEMS_LOOKED_AT]:
        looked_at[item.source] += 1
        part = changing_part_of(store, item)
        if part is not None:
            found.setdefault((item.source, part.line), []).append(item.key)
    hints = [
        NoiseHint(source, line, len(keys), looked_at[source], keys[0])
        for (source, line), keys in found.items()
    ]
    return tuple(sorted(hints, key=lambda hint: -hint.items)[:_HINTS_SHOWN])
