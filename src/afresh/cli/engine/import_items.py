"""Adds what ``afresh add --import`` read from a file of another program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import TYPE_CHECKING

from afresh.cli.summary import print_data, print_json, print_note
from afresh.values.errors import UsageError
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.cli.engine.imports.imported import ImportedList
    from afresh.engine.engine import Engine


def add_imported(engine: Engine, found: ImportedList, source: str | None) -> tuple[int, int]:
    """Add the items and polls of an imported file; return the numbers of new items and of recorded polls.
    Feeds are left to the caller. Items that are known stay as they are, but their past polls are recorded."""
    settings = engine.settings
    name = source or (settings.sources[0].settings.name if settings.sources else None)
    unknown = set(_unknown(engine, [item.key for item in found.items], name))
    new = 0
    for alike, items in groupby(found.items, key=lambda item: replace(item, key="")):
        new += engine.add(
            [item.key for item in items],
            source=source,
            weight=alike.weight,
            cost=alike.cost,
            min_interval_s=alike.min_interval_s,
            max_interval_s=alike.max_interval_s,
            selector=alike.selector,
        )
    paused = [item.key for item in found.items if item.is_paused and item.key in unknown]
    if paused:
        from afresh.values.items import ItemChange

        engine.set(paused, ItemChange(status="paused"), source=name)
    taken = 0
    if found.polls:
        taken = engine.observe(replace(poll, source=name) for poll in found.polls).taken
    return new, taken


def without_bad_keys(engine: Engine, found: ImportedList, source: str | None) -> ImportedList:
    """Return what an imported file holds without the items that the source could never poll; they are named
    among what was skipped, so that one of them does not keep the others out."""
    table = engine.settings.source(source) if source else next(iter(engine.settings.sources), None)
    if table is None:
        return found  # adding the others says so
    items, skipped, bad = [], list(found.skipped), set[str]()
    for item in found.items:
        try:
            table.kind.group(table.settings, item.key)
            items.append(item)
        except UsageError as error:
            bad.add(item.key)
            skipped.append(str(error))
    polls = tuple(poll for poll in found.polls if poll.item not in bad)
    return replace(found, items=tuple(items), polls=polls, skipped=tuple(skipped))


def preview_addition(
    engine: Engine,
    keys: Sequence[str],
    imported: ImportedList | None,
    listings: Mapping[str, Sequence[str]],
    source: str | None,
    *,
    as_json: bool,
) -> None:
    """Print what ``afresh add`` with these arguments would add, one item on each line."""
    name = source or (engine.settings.sources[0].settings.name if engine.settings.sources else None)
    given = [*keys, *(item.key for item in (imported.items if imported is not None else ()))]
    new = _unknown(engine, list(dict.fromkeys(given)), name)
    known = len(set(given)) - len(new)
    found = engine.preview(source=source, limit_s=float("inf"), **listings) if listings else None
    if found is not None:
        new = list(dict.fromkeys([*new, *found.new]))
        known += found.known
    if as_json:
        left = [asdict(one) for one in found.left_out] if found is not None else []
        print_json({"would_add": new, "known": known, "left_out": left})
        return
    for key in new:
        print_data(key)
    for address, problem in (found.problems if found is not None else {}).items():
        print_note(f"{address}: {problem}")
    for one in found.left_out if found is not None else ():
        print_note(f"left out: {format_count(one.links, 'link')}, {one.reason}, such as {one.example}")
    more = "; these pages may show more" if listings.get("follow") else ""
    print_note(f"would add {len(new):,}, {known:,} known already{more}")


def _unknown(engine: Engine, keys: Sequence[str], source: str | None) -> list[str]:
    known = engine.store.items.ids(list(keys), source)
    return [key for key in keys if key not in known]
