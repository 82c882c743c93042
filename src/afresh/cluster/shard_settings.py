"""The settings of one shard: the project's settings, with a store of its own and only its hosts' listings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from afresh.cluster.host_hashing import assign_hosts
from afresh.engine.plugins import source_kinds
from afresh.engine.runner.listing_changes import LISTING_FIELDS, with_more_listings, with_only_listings
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings, SourceTable
from afresh.sources.http.settings import HttpSettings
from afresh.values.errors import UsageError

Listings = Mapping[str, Mapping[str, Sequence[str]]]
"""Documents that commands added, by source and by the setting that they extend, such as ``sitemaps``."""


@dataclass(frozen=True, slots=True)
class ShardSpec:
    """What a process needs to become the shard ``shard`` of ``shards``. ``text`` is that of the settings
    file, ``overrides`` what replaces its values. ``folder`` is where relative paths begin. ``project`` is the
    name under which the processes of one project find each other."""

    shard: int
    shards: tuple[int, ...]
    text: str
    overrides: Mapping[str, str]
    folder: str
    project: str
    listings: Listings = field(default_factory=dict)

    def parse(self) -> Settings:
        return parse_settings(self.text, self.overrides, kinds=source_kinds())


def shard_settings(spec: ShardSpec) -> Settings:
    """Return the settings of the shard of ``spec``. It begins with an equal part of the budget."""
    settings = spec.parse()
    owner = shard_of(spec.shards)
    sources = tuple(
        _own_part(table, spec, owner) for table in settings.sources if _is_needed(table, spec, owner)
    )
    count, store = len(spec.shards), {"url": settings.cluster.store.format(shard=spec.shard)}
    if settings.store.copies:  # a place of its own, because a shard deletes what it does not use any more
        store["copies"] = f"{settings.store.copies.rstrip('/')}/shard-{spec.shard}"
    return replace(
        with_budget(settings, settings.budget.requests / count, settings.budget.burst_requests / count),
        store=settings.store.model_copy(update=store),
        sources=sources,
    )


def with_budget(settings: Settings, requests: float, burst: float) -> Settings:
    """Return the settings with this many requests per second. The other limits of the budget, which are those
    of the project or of the shard now, change in the same proportion."""
    budget, part = settings.budget, requests / settings.budget.requests
    update: dict[str, object] = {"requests": requests, "burst": max(burst, 1.0), "each_item": False}
    for name in ("bytes", "seconds", "money"):
        limit = getattr(budget, name)
        if limit is not None:
            update[name] = limit * part
    return replace(settings, budget=budget.model_copy(update=update))


def check_settings(settings: Settings) -> None:
    """Raise ``UsageError`` for settings that a cluster cannot keep."""
    if settings.budget.each_item:
        raise UsageError("[budget] requests per item cannot be shared by a cluster: state the total, as 50/s")
    try:
        url = settings.cluster.store.format(shard=0)
    except (KeyError, IndexError, ValueError) as error:
        raise UsageError(f"[cluster] store: {{{error}}} is unknown: only {{shard}} is replaced") from None
    if url.startswith("memory:"):
        raise UsageError("[cluster] store: a store in memory is lost when Ray restarts a shard")


def shard_of(shards: Sequence[int]) -> Callable[[str], int]:
    """Return the function that computes the shard of a host."""
    return partial(_assign, tuple(shards))


def _assign(shards: tuple[int, ...], host: str) -> int:
    return assign_hosts([host], shards)[0]


def _is_needed(table: SourceTable, spec: ShardSpec, owner: Callable[[str], int]) -> bool:
    """Whether the shard polls the source: one of HTTP by its hosts, any other as a whole."""
    if isinstance(table.settings, HttpSettings):
        return True
    return owner(table.kind.group(table.settings, "")) == spec.shard


def _own_part(table: SourceTable, spec: ShardSpec, owner: Callable[[str], int]) -> SourceTable:
    """Return the source with the listings that this shard reads: those of its own hosts."""
    own = table.settings
    if not isinstance(own, HttpSettings):
        return table
    own = with_more_listings(own, spec.listings.get(own.name, {}))
    named: dict[str, Any] = {name: getattr(own, name) for name in LISTING_FIELDS}
    named["follow"] = named["follow"].start
    kept = {
        name: [url for url in urls if owner(table.kind.group(own, url)) == spec.shard]
        for name, urls in named.items()
    }
    return replace(table, settings=with_only_listings(own, kept))


def project_name(url: str) -> str:
    """Return a short name of a project, from the address of its store.

    >>> project_name("sqlite:/srv/mirror/afresh.db") == project_name("sqlite:/srv/mirror/afresh.db")
    True
    """
    from hashlib import blake2b

    return blake2b(json.dumps(url).encode(), digest_size=6).hexdigest()
