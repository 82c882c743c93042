"""What can be done with the items of a project: add, change, remove, and say that they changed."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from afresh.engine.logs import log_event
from afresh.engine.runner.listing_changes import LISTING_FIELDS, read_listings, save_listings
from afresh.engine.runner.listing_task import ListingResult
from afresh.engine.scheduler.reschedule import reschedule_changed
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import LISTED_AT
from afresh.sources.change_detection import Recipe
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import ListingError, UsageError, one_of
from afresh.values.formatting import format_moment
from afresh.values.items import ItemChange, NewItem


class ItemOperations(ABC):
    """The part of an ``Engine`` that registers and changes items."""

    def __init__(self, settings: Settings, store: Store, clock: Clock) -> None:
        self.settings, self.store = settings, store
        self.clock = clock
        """The time by which everything is done; on a shared store it is the store's."""

    @abstractmethod
    def current(self) -> Settings:
        """Return the settings with the budget that counts now."""

    @abstractmethod
    def _read_listings(self, source: str, documents: Mapping[str, Sequence[str]]) -> ListingResult:
        """Read these documents of a source now."""

    def add(
        self,
        keys: Iterable[str],
        *,
        source: str | None = None,
        weight: float = 1.0,
        cost: float = 1.0,
        min_interval_s: float = 0.0,
        max_interval_s: float = math.inf,
        prior_rate_per_s: float | None = None,
        labels: Mapping[str, str] | None = None,
        selector: str = "",
    ) -> int:
        """Register items (addresses, or what their source knows them by); return how many were new.
        ``selector`` (CSS) says which part of their content counts, instead of the source's own."""
        Recipe().for_item(selector)  # refuses what is no selector
        name = self._source_name(source)
        group = self._group_function(name)
        new = (
            NewItem(
                key,
                name,
                group(key),
                weight=weight,
                cost=cost,
                min_interval_s=min_interval_s,
                max_interval_s=max_interval_s,
                prior_rate_per_s=prior_rate_per_s,
                labels=labels or {},
                selector=selector,
            )
            for key in keys
        )
        try:
            return self.store.items.add(new, self.clock.now_s())
        except UsageError as error:  # a key that the source could never poll
            others = [table.settings.name for table in self.settings.sources if table.settings.name != name]
            if source is not None or not others:
                raise
            hint = f"for a source other than {name!r} say --source {' or '.join(others)}"
            raise UsageError(f"{error}; {hint}") from None

    def add_listings(self, *, source: str | None = None, **documents: Sequence[str]) -> int:
        """Register what ``sitemaps``, ``feeds`` or ``discover`` (start pages) list; return how many are new.
        The documents are read now, within the budget, and again by every run, at their own pace. Those that
        cannot be read are not kept, and raise a ``ListingError`` after the others are taken in. Outside the
        windows of the source they are left for a run to read."""
        name = self._source_name(source)
        group = self._group_function(name)
        for field, urls in documents.items():
            one_of("kind of listing", field, LISTING_FIELDS)
            for url in urls:
                group(url)  # refuses what is no address
        opens_s = self.settings.closed_sources(self.clock.now_s()).get(name)
        if opens_s is not None:
            save_listings(self.store, name, documents)
            words = f"outside its windows: a run reads what it lists from {format_moment(opens_s)} on"
            log_event(logging.WARNING, words, source=name)
            return 0
        found = self._read_listings(name, documents)
        self._keep_listings(name, documents, found)
        named = {url for urls in documents.values() for url in urls}
        failed = {url: words for url, words in found.problems.items() if url in named & found.unread}
        for url, words in found.problems.items():
            if url not in failed:
                log_event(logging.WARNING, "listing has a problem", listing=url, problem=words)
        if failed:
            raise ListingError(failed, found.born)
        return found.born

    def _keep_listings(self, name: str, documents: Mapping[str, Sequence[str]], found: ListingResult) -> None:
        """Save the documents that could be read; where they are the first, note when to read them again."""
        table = self.settings.source(name)
        known = read_listings(self.store, name) or (table is not None and table.settings.lists_items)
        read = {field: [url for url in urls if url not in found.unread] for field, urls in documents.items()}
        if any(read.values()):
            save_listings(self.store, name, read)
            if not known:
                self.store.state.set({LISTED_AT + name: repr(found.again_s).encode()})

    def remove(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Forget items and their copies, and tell the hooks; return the keys that are not known."""
        hooked = any(source.on_change for source in self.settings.sources)
        return self.store.items.remove(keys, self.clock.now_s(), announce=hooked)

    def set(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        """Change items; a running engine follows within a second. Return the keys that are not known."""
        unknown = self.store.items.change(keys, change)
        ids = sorted(self.store.items.ids(list(keys)).values())
        reschedule_changed(self.store, self.current(), ids, change, self.clock.now_s())
        return unknown

    def poll_now(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Have items polled as soon as possible; return the keys that are not known."""
        return self.set(keys, ItemChange(due_s=self.clock.now_s(), status="active"))

    def notice(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Take hints that items changed, such as a webhook gives; return the keys that are not known."""
        ids = self.store.items.ids(keys)
        self.store.notices.add(list(ids.values()), self.clock.now_s())
        return tuple(key for key in keys if key not in ids)

    def _source_name(self, source: str | None) -> str:
        """Return the name of a source, by default the first of the settings; an unknown one is refused."""
        names = [table.settings.name for table in self.settings.sources]
        if source is not None:
            return one_of("source", source, names)
        if not names:
            raise UsageError("the settings name no source: add a [[source]] table")
        return names[0]

    def _group_function(self, name: str) -> Callable[[str], str]:
        """Return what tells the group of a key, by the source's own rule."""
        table = self.settings.source(name)
        assert table is not None
        return partial(table.kind.group, table.settings)
