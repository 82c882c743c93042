"""Measures how large changes are, before they are committed: new content is compared with the stored copy.

The size is 1 − the similarity of the two normalised contents, from 0 to 1 (``similarity.exact_similarity``).
It is not known (None) for the first copy of an item, if the content settings changed since the last poll, and
if the contents cannot be compared within the parse budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from afresh.engine.settings.tables import Settings
from afresh.sources.change_detection import change_size, most_bytes_here
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.stores.store import Store
from afresh.values.errors import StoreCorruptError
from afresh.values.outcome import Outcome

_MOST_WORDS_BYTES = 262_144  # to compare the words of so many bytes takes less than 0.1 s


def needs_size(outcome: Outcome) -> bool:
    """Return whether an outcome has a change whose size is to be measured."""
    seen, copy = outcome.observation, outcome.new_copy
    return seen is not None and seen.changed and copy is not None and copy.change_size is None


def measure_changes(
    store: Store, parsers: ParserPool, settings: Settings, outcomes: Sequence[Outcome]
) -> list[Outcome]:
    """Return the outcomes with the sizes of their changes. It takes a while, so call it in a thread."""
    with parsers.joined():
        return [_measured(store, parsers, settings, each) if needs_size(each) else each for each in outcomes]


def _measured(store: Store, parsers: ParserPool, settings: Settings, outcome: Outcome) -> Outcome:
    lease, new, table = outcome.lease, outcome.new_copy, settings.source(outcome.lease.source)
    old = None
    with suppress(StoreCorruptError):  # the size stays unknown, and the new copy takes the place of the old
        old = store.copies.get(lease.item_id)
    if old is None or new is None or table is None:
        return outcome
    recipe = table.settings.recipe.for_item(lease.selector)
    contents = [(new.content, new.media_type), (old.content, old.version.media_type)]
    (longer, longer_type), (shorter, shorter_type) = sorted(contents, key=lambda each: -len(each[0]))
    small = min(most_bytes_here(recipe, None), _MOST_WORDS_BYTES)
    arguments = longer, longer_type, shorter, shorter_type, recipe
    try:
        size = parsers.parse_here(change_size, *arguments, small=small, party=lease.group)
    except ParseBudgetError:
        return outcome
    return replace(outcome, new_copy=replace(new, change_size=size))
