"""Operations on the items of a project: add, change, remove, poll now, and notices of changes."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from afresh.engine.logs import log_event
from afresh.engine.runner.listing_changes import LISTING_FIELDS, read_listings, save_listings
from afresh.engine.scheduler.content_settings import forget_items
from afresh.engine.scheduler.reschedule import reschedule_changed
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import LISTED_AT
from afresh.sources.change_detection import Recipe
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import ListingError, UsageError, one_of
from afresh.values.formatting import format_moment
from afresh.values.items import ItemChange, NewItem

if TYPE_CHECKING:
    from afresh.engine.runner.listing_task import ListingResult


class ItemOperations(ABC):
    """The part of an ``Engine`` that registers and changes items."""

    def __init__(self, settings: Settings, store: Store, clock: Clock) -> None:
        self.settings, self.store = settings, store
        self.clock = clock
        """The clock of all operations; on a shared store it is the clock of the store."""

    @abstractmethod
    def current(self) -> Settings:
        """Return the settings with the current budget."""

    @abstractmethod
    def _read_listings(
        self, source: str, documents: Mapping[str, Sequence[str]], limit_s: float
    ) -> ListingResult | None:
        """Read listings of ``source`` now. ``documents`` maps settings such as ``sitemaps`` to URLs. Return
        None if this takes longer than ``limit_s`` seconds; what was read by then is applied."""

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
        """Register items by their keys, such as URLs; return how many were new. ``source`` is by default the
        first source of the settings. ``min_interval_s`` and ``max_interval_s`` limit the polling interval;
        ``prior_rate_per_s`` is a first guess of the rate, in changes per second. ``selector`` (CSS) selects
        the part of the content that is compared, instead of the selectors of the source."""
        Recipe().for_item(selector)  # raises if it is not a valid selector
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
            wrong = UsageError(f"{error}; for a source other than {name!r} name {' or '.join(others)}")
            wrong.option_hint = " (--source)"
            raise wrong from None

    def add_listings(
        self, *, source: str | None = None, limit_s: float = math.inf, **documents: Sequence[str]
    ) -> int:
        """Register the items that listings name; return how many are new. ``documents`` are the keyword
        arguments ``sitemaps``, ``feeds``, ``discover`` (start pages) and ``follow`` (pages whose links are
        followed), each a list of URLs. They are read
        now, within the budget, and later regularly by every run. A document that cannot be read is not saved;
        ``ListingError`` is raised when the others are applied. At hours in which the source may not be
        polled, documents are only saved, and a run reads them later; so it does if they take longer than
        ``limit_s`` seconds."""
        name = self._source_name(source)
        group = self._group_function(name)
        for field, urls in documents.items():
            one_of("kind of listing", field, LISTING_FIELDS)
            for url in urls:
                group(url)  # raises if it is not a valid URL
        # A start page is an item, which no run could ever poll; a document is refused when it is read.
        starts = {url: self.refusal(url, source=name) for url in documents.get("follow", ())}
        failed = {url: words for url, words in starts.items() if words}
        if failed:
            documents["follow"] = [url for url in starts if url not in failed]
            if not any(documents.values()):
                raise ListingError(failed)
        opens_s = self.settings.closed_sources(self.clock.now_s()).get(name)
        if opens_s is not None:
            save_listings(self.store, name, documents)
            words = f"outside its windows: a run reads the listings from {format_moment(opens_s)} on"
            log_event(logging.WARNING, words, source=name)
            return 0
        before = self._count_items(name)
        found = self._read_listings(name, documents, limit_s)
        if found is None:
            save_listings(self.store, name, documents)
            log_event(logging.WARNING, f"not read within {limit_s:g} s: a run reads the rest", source=name)
            return self._count_items(name) - before
        self._keep_listings(name, documents, found)
        named = {url for urls in documents.values() for url in urls}
        failed |= {url: words for url, words in found.problems.items() if url in named & found.unread}
        for url, words in found.problems.items():
            if url not in failed:
                log_event(logging.WARNING, "listing has a problem", listing=url, problem=words)
        if failed:
            raise ListingError(failed, found.born)
        return found.born

    def _count_items(self, source: str) -> int:
        return sum(count.items for count in self.store.items.counts() if count.source == source)

    def _keep_listings(self, name: str, documents: Mapping[str, Sequence[str]], found: ListingResult) -> None:
        """Save the documents that could be read; if they are the first, also when to read them again."""
        table = self.settings.source(name)
        known = read_listings(self.store, name) or (table is not None and table.settings.lists_items)
        read = {field: [url for url in urls if url not in found.unread] for field, urls in documents.items()}
        if any(read.values()):
            save_listings(self.store, name, read)
            if not known:
                self.store.state.set({LISTED_AT + name: repr(found.again_s).encode()})

    # Of the methods below, each raises ``AmbiguousKeyError`` before it changes anything, if ``source`` is not
    # given and several sources have an item with one of the keys.

    def remove(self, keys: Sequence[str], *, source: str | None = None) -> tuple[str, ...]:
        """Remove items and their copies, and queue events for the hooks. Return the keys without an item."""
        settings, ids = self.settings, self.store.items.ids(keys, source)
        hooked = any(table.on_change for table in settings.sources) or settings.views.has_hooks()
        self.store.items.remove(list(ids.values()), self.clock.now_s(), announce=hooked)
        return tuple(key for key in keys if key not in ids)

    def set(self, keys: Sequence[str], change: ItemChange, *, source: str | None = None) -> tuple[str, ...]:
        """Apply ``change`` to items; running engines follow soon. Return the keys without an item."""
        known = self.store.items.ids(keys, source)
        ids = sorted(known.values())
        if change.selector is not None:
            others = [item.id for item in self.store.items.by_id(ids) if item.selector != change.selector]
            forget_items(self.store, others, self.clock.now_s())
        self.store.items.change(ids, change)
        reschedule_changed(self.store, self.current(), ids, change, self.clock.now_s())
        return tuple(key for key in keys if key not in known)

    def poll_now(self, keys: Sequence[str], *, source: str | None = None) -> tuple[str, ...]:
        """Make items due now, so that they are polled soon. Return the keys without an item."""
        return self.set(keys, ItemChange(due_s=self.clock.now_s(), status="active"), source=source)

    def notice(self, keys: Sequence[str], *, source: str | None = None) -> tuple[str, ...]:
        """Record notices that items changed, for example from a webhook. Without ``source``, they reach the
        items of all sources that have these keys. Return the keys without an item."""
        found = self.store.items.find(keys, source)
        self.store.notices.add([item.id for item in found], self.clock.now_s(), "webhook")
        known = {item.key for item in found}
        return tuple(key for key in keys if key not in known)

    def refusal(self, key: str, *, source: str | None = None) -> str:
        """Return why the settings refuse to poll an item, as far as its key says: a private address that they
        do not allow. Empty if they do not refuse it."""
        table = self.settings.source(self._source_name(source))
        return "" if table is None else table.settings.refusal(key)

    def _source_name(self, source: str | None) -> str:
        """Return ``source``, by default the first source of the settings; raise if it is unknown."""
        names = [table.settings.name for table in self.settings.sources]
        if source is not None:
            return one_of("source", source, names)
        if not names:
            raise UsageError("the settings name no source: add a [[source]] table")
        return names[0]

    def _group_function(self, name: str) -> Callable[[str], str]:
        """Return the function that computes the group of a key, for keys of the source ``name``."""
        table = self.settings.source(name)
        assert table is not None
        return partial(table.kind.group, table.settings)
