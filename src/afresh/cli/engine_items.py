"""``afresh add``, ``remove`` and ``set``: which items there are, and how each is treated."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.engine_project import (
    AllowPrivate,
    ListJson,
    Sets,
    allows_private,
    open_project,
    private_overrides,
)
from afresh.cli.options import read_duration
from afresh.cli.summary import print_json
from afresh.values.errors import InputError, ListingError, UsageError
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.values.items import ItemChange

Keys = Annotated[list[str] | None, typer.Argument(metavar="URL…", help="Addresses, or keys of a source.")]
MinInterval = Annotated[
    str | None, typer.Option("--min-interval", metavar="1h", help="Never poll more often than this.")
]
MaxInterval = Annotated[
    str | None, typer.Option("--max-interval", metavar="7d", help="Poll at least this often.")
]

Selector = Annotated[
    str | None,
    typer.Option("--selector", metavar="CSS", help="Only this part of the page counts, for these items."),
]


def add(
    keys: Keys = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="An item a line; - is standard input."),
    ] = None,
    sitemap: Annotated[
        list[str] | None,
        typer.Option("--sitemap", metavar="URL", help="All that it lists, now and later."),
    ] = None,
    feed: Annotated[
        list[str] | None, typer.Option("--feed", metavar="URL", help="All that a feed lists, now and later.")
    ] = None,
    discover: Annotated[
        list[str] | None, typer.Option("--discover", metavar="URL", help="Find sitemaps and feeds of a site.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="Their source; by default the first."),
    ] = None,
    weight: Annotated[float, typer.Option("--weight", metavar="W", help="Importance.")] = 1.0,
    cost: Annotated[float, typer.Option("--cost", metavar="C", help="Cost of one poll.")] = 1.0,
    min_interval: MinInterval = None,
    max_interval: MaxInterval = None,
    selector: Selector = None,
    allow_private: AllowPrivate = False,
    sets: Sets = None,
    as_json: ListJson = False,
) -> None:
    """Register items; those already known are left as they are."""
    documents = {"sitemaps": sitemap, "feeds": feed, "discover": discover}
    listings = {name: urls for name, urls in documents.items() if urls}
    if not (keys or file or listings):
        raise UsageError("nothing to add: give URLs, --file, --sitemap, --feed or --discover")
    numbers = _numbers(weight, cost, min_interval, max_interval)
    with open_project(sets, private_overrides(allow_private)) as engine:
        new = engine.add(
            _all_keys(keys, file),
            source=source,
            weight=weight,
            cost=cost,
            min_interval_s=numbers.min_interval_s or 0.0,
            max_interval_s=float("inf") if numbers.max_interval_s is None else numbers.max_interval_s,
            selector=selector or "",
        )
        failed: ListingError | None = None
        try:
            new += engine.add_listings(source=source, **listings) if listings else 0
        except ListingError as error:
            failed, new = error, new + error.new
        total = sum(count.items for count in engine.store.items.counts())
    if as_json:
        unread = {"unread": failed.problems} if failed is not None else {}
        print_json({"new": new, "items": total, **unread})
    typer.echo(f"{new:,} new, {format_count(total, 'item')} in all", err=True)
    if failed is not None:
        raise failed
    if allow_private and not allows_private():
        typer.echo("'afresh run' needs --allow-private too, or allow_private = true in afresh.toml", err=True)


def remove(
    keys: Keys = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="An item a line; - is standard input."),
    ] = None,
) -> None:
    """Forget items and their copies."""
    wanted = list(dict.fromkeys(_all_keys(keys, file)))
    if not wanted:
        raise UsageError("nothing to remove: give URLs or --file")
    with open_project() as engine:
        unknown = engine.remove(wanted)
    _say_unknown(unknown, wanted)
    typer.echo(f"{format_count(len(wanted) - len(unknown), 'item')} removed", err=True)


def set_items(
    keys: Keys = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="An item a line; - is standard input."),
    ] = None,
    weight: Annotated[float | None, typer.Option("--weight", metavar="W", help="Importance.")] = None,
    cost: Annotated[float | None, typer.Option("--cost", metavar="C", help="Cost of one poll.")] = None,
    min_interval: MinInterval = None,
    max_interval: MaxInterval = None,
    selector: Selector = None,
    pause: Annotated[bool, typer.Option("--pause", help="Poll no more until resumed.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Poll what was paused, gone or refused.")] = False,
    poll_now: Annotated[bool, typer.Option("--poll-now", help="Poll as soon as may be.")] = False,
) -> None:
    """Change how items are treated; a running engine follows within a second."""
    from afresh.sources.change_detection import Recipe
    from afresh.values.clock import SystemClock
    from afresh.values.items import ItemChange

    wanted = list(dict.fromkeys(_all_keys(keys, file)))
    if selector:
        Recipe().for_item(selector)  # refuses what is no selector
    if pause and (resume or poll_now):
        raise UsageError("--pause goes with neither --resume nor --poll-now")
    change = replace(
        _numbers(weight, cost, min_interval, max_interval),
        selector=selector,
        status="paused" if pause else "active" if resume else None,
        due_s=SystemClock().now_s() if poll_now or resume else None,
    )
    if not wanted:
        raise UsageError("nothing to set: give URLs or --file")
    if change == ItemChange():
        raise UsageError("nothing to set: say what is to change, such as --weight 3 or --pause")
    with open_project() as engine, _by_option():
        unknown = engine.set(wanted, change)
    _say_unknown(unknown, wanted)
    typer.echo(f"{format_count(len(wanted) - len(unknown), 'item')} changed", err=True)


def _numbers(
    weight: float | None, cost: float | None, min_interval: str | None, max_interval: str | None
) -> ItemChange:
    """What the options say of items, refused as wrong options where no plan could use it."""
    from afresh.values.items import ItemChange

    shortest, longest = (
        None if text is None else read_duration(option, text, 0.0)
        for option, text in (("--min-interval", min_interval), ("--max-interval", max_interval))
    )
    if shortest is not None and longest is not None and shortest > longest:
        raise UsageError(f"--min-interval {min_interval} is more than --max-interval {max_interval}")
    with _by_option():
        return ItemChange(weight=weight, cost=cost, min_interval_s=shortest, max_interval_s=longest)


@contextmanager
def _by_option() -> Iterator[None]:
    """A number that no plan could use is a wrong option, called by its name."""
    try:
        yield
    except InputError as error:
        words = str(error).replace("min_interval_s", "--min-interval")
        raise UsageError(words.replace("max_interval_s", "--max-interval")) from None


def _all_keys(keys: list[str] | None, file: str | None) -> Iterator[str]:
    yield from keys or []
    if file is None:
        return
    try:
        with nullcontext(sys.stdin) if file == "-" else Path(file).open(encoding="utf-8") as lines:
            for line in lines:
                if key := line.strip():
                    yield key
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text with an item a line", path=file) from None


def _say_unknown(unknown: tuple[str, ...], wanted: list[str]) -> None:
    if unknown:
        shown = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
        are = "is" if len(unknown) == 1 else "are"
        rest = "nothing was done" if len(unknown) == len(wanted) else "the others were done"
        raise UsageError(f"{len(unknown):,} of these items {are} not known: {shown}; {rest}")
