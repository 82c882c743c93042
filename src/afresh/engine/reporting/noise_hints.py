"""Hints about items whose changes nearly all lie in one small part, and the settings that leave it out.

Such a part may be a clock, or all that matters on a page. If nothing else of an item ever changed, one item
does not tell; a hint is given only if other items of the source change in the same part too."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from afresh.sources.changing_part import FEWEST, ChangingPart, find_changing_part
from afresh.stores.store import Store
from afresh.values.items import Item, ItemQuery

_ITEMS_READ, _ITEMS_LOOKED_AT = 50, 8  # of those that were found changed last
_LARGEST = 500_000  # bytes of a copy; larger ones would take too long
_HINTS_SHOWN = 3
_ADVICE = "if this part does not matter to you, leave it out by"


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
        return f"{who} change nearly always in one small part; {_ADVICE} {self.line}"


def shared_part_of(store: Store, item: Item) -> ChangingPart | None:
    """Return the small part in which nearly all of the last changes of an item lie, or None. A part that is
    all that changes is returned only if it changes in another item of the source too."""
    part = changing_part_of(store, item)
    if part is None or part.changes < part.of:
        return part
    query = ItemQuery(source=item.source, sort="changed", descending=True)
    others = [
        other
        for other in store.items.page(query, _ITEMS_READ).items
        if other.id != item.id and other.changes >= FEWEST
    ]
    found = (changing_part_of(store, other) for other in others[:_ITEMS_LOOKED_AT])
    return part if any(other is not None and other.line == part.line for other in found) else None


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
    return f"{part.changes} of its last {part.of} changes lie in one small part; {_ADVICE} {part.line}"


def find_noise_hints(store: Store) -> tuple[NoiseHint, ...]:
    """Return hints about the items that were found changed last; of these only some are looked at."""
    page = store.items.page(ItemQuery(sort="changed", descending=True), _ITEMS_READ)
    often = sorted(page.items, key=lambda item: -item.changes / max(item.polls, 1))
    looked_at: Counter[str] = Counter()
    found: dict[tuple[str, str], list[str]] = {}
    sure: set[tuple[str, str]] = set()  # parts beside which something else changed
    for item in [item for item in often if item.changes >= FEWEST][:_ITEMS_LOOKED_AT]:
        looked_at[item.source] += 1
        part = changing_part_of(store, item)
        if part is not None:
            found.setdefault((item.source, part.line), []).append(item.key)
            if part.changes < part.of:
                sure.add((item.source, part.line))
    hints = [
        NoiseHint(source, line, len(keys), looked_at[source], keys[0])
        for (source, line), keys in found.items()
        if len(keys) > 1 or (source, line) in sure
    ]
    return tuple(sorted(hints, key=lambda hint: -hint.items)[:_HINTS_SHOWN])
