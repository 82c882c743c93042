"""Why items fail: the most frequent problems, in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from afresh.stores.store import Store
from afresh.values.items import ItemQuery

LOOKED_AT = 1000
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """Why some items fail, and one of them. Of very many items not all may be counted."""

    words: str
    items: int
    example: str


def count_problems(store: Store) -> tuple[ItemProblem, ...]:
    """Return the most frequent problems of the items that failed most often."""
    page = store.items.page(ItemQuery(sort="failures", descending=True), LOOKED_AT)
    failing = [item for item in page.items if item.failures and item.status in ("active", "refused")]
    examples = {item.problem: item.key for item in reversed(failing)}
    counts = Counter(item.problem for item in failing)
    return tuple(ItemProblem(words, items, examples[words]) for words, items in counts.most_common(_SHOWN))
