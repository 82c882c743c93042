"""The part of an ``Engine`` that reports: status, reasons, items with their estimates, and changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from afresh.engine.feed.feed_reader import ChangePage, ChangeQuery, FeedReader
from afresh.engine.reporting.pulse import as_running
from afresh.engine.reporting.status import Status, read_status
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import UnknownItemError, UsageError, did_you_mean
from afresh.values.items import Item, ItemQuery, display_key
from afresh.values.stored import Version

if TYPE_CHECKING:  # a command that only shows the status needs none of these
    from afresh.engine.reporting.item_view_status import ViewWhy
    from afresh.engine.reporting.overview import EstimatedPage, ItemDetail, Overview
    from afresh.engine.reporting.why import Why


class ProjectReports(ABC):
    """Reads the store, and changes nothing. With ``list_items`` it implements ``WatchedProject``."""

    settings: Settings
    store: Store
    clock: Clock
    feed: FeedReader

    @abstractmethod
    def current(self) -> Settings:
        """Return the settings with the current budget."""

    def running_settings(self) -> Settings:
        """Return the settings with the budget and the delays of the running engine, if one is running."""
        return as_running(self.store, self.current(), self.clock.now_s())

    def status(self) -> Status:
        """Return the status of this project: freshness, budget, items and problems."""
        return read_status(self.store, self.running_settings(), self.clock.now_s())

    def overview(self) -> Overview:
        """Return what the dashboard shows first: the status, the last day, and what fails."""
        from afresh.engine.reporting.overview import read_overview

        return read_overview(self.store, self.running_settings(), self.clock.now_s())

    def check_store(self) -> None:
        """Raise ``StoreError`` if the store cannot be read now."""
        self.store.state.names()

    def source_names(self) -> list[str]:
        """Return the sources of the settings, and those that only items still have."""
        names = [table.settings.name for table in self.settings.sources]
        return list(dict.fromkeys([*names, *(count.source for count in self.store.items.counts())]))

    def why(self, key: str, *, source: str | None = None) -> Why:
        """Explain why an item is polled as often as it is."""
        from afresh.engine.reporting.why import explain_key

        return explain_key(self.store, self.running_settings(), key, source, self.clock.now_s())

    def why_view(self, name: str) -> ViewWhy:
        """Explain how fresh an item view of the settings is, and by which of its items it is stale."""
        from afresh.engine.reporting.item_view_status import explain_view

        view = self.settings.views.view(name)
        if view is None:
            near = did_you_mean(name, [each.name for each in self.settings.views.tables])
            raise UsageError(f"there is no view {name!r}{near}")
        return explain_view(self.store, self.running_settings(), view, self.clock.now_s())

    def list_items(self, query: ItemQuery, limit: int, cursor: str | None = None) -> EstimatedPage:
        """Return a page of at most ``limit`` items, each with what is estimated of it."""
        from afresh.engine.reporting.overview import read_page

        return read_page(self.store, self.running_settings(), query, limit, cursor, self.clock.now_s())

    def detail(self, key: str, *, source: str | None = None) -> ItemDetail:
        """Return everything that an item's page shows, read at one moment."""
        from afresh.engine.reporting.overview import read_detail

        item = self.find_item(key, source)
        return read_detail(self.store, self.running_settings(), item, self.clock.now_s())

    def find_item(self, key: str, source: str | None = None) -> Item:
        """Return an item; raise ``UnknownItemError`` if there is none with this key."""
        item = self.store.items.get(key, source)
        if item is None:
            of_source = "" if source is None else f" of the source {source!r}"
            raise UnknownItemError(f"there is no item {display_key(key)}{of_source}: add it first")
        return item

    def versions(self, key: str, *, source: str | None = None) -> list[Version]:
        """Return the versions of an item's copy that are in the store, the newest first."""
        return self.store.copies.versions(self.find_item(key, source).id)

    def changes(
        self, since: str | None = None, limit: int = 1000, *, source: str | None = None
    ) -> ChangePage:
        """Return at most ``limit`` changes after the cursor ``since`` (None: from the oldest kept)."""
        return self.feed.page(since, limit, ChangeQuery(source))
