"""``afresh add``, ``remove`` and ``set`` register items, remove them, and change their settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

from typer import Argument, Option

from afresh.cli.engine import project
from afresh.cli.engine.dbt_commands import add_models
from afresh.cli.engine.import_items import add_imported, preview_addition, without_bad_keys
from afresh.cli.engine.refused_keys import RefusedKeys
from afresh.cli.engine.selection_options import Match, WithStatus, read_selection
from afresh.cli.files import read_lines
from afresh.cli.options import PrintJson, read_duration
from afresh.cli.summary import print_json, print_note
from afresh.values.errors import InputError, ListingError, UsageError
from afresh.values.formatting import format_count
from afresh.values.printable_text import hide_credentials

if TYPE_CHECKING:
    from afresh.cli.engine.imports.imported import ImportedList
    from afresh.engine.engine import Engine
    from afresh.values.items import ItemChange

Keys: TypeAlias = Annotated[
    list[str] | None, Argument(metavar="URL…", help="Addresses, or keys of a source.")
]
KeysFile: TypeAlias = Annotated[
    str | None, Option("--file", metavar="FILE", help="A file with one item per line; - is standard input.")
]
MinInterval: TypeAlias = Annotated[
    str | None, Option("--min-interval", metavar="1h", help="Never poll more often than this.")
]
MaxInterval: TypeAlias = Annotated[
    str | None, Option("--max-interval", metavar="7d", help="Poll at least this often.")
]
Listings: TypeAlias = Annotated[
    list[str] | None, Option(metavar="URL", help="Add all items that it lists, now and later.")
]
Selector: TypeAlias = Annotated[
    str | None,
    Option("--selector", metavar="CSS", help="Compare only this part of the pages of these items."),
]


def add(
    keys: Keys = None,
    file: KeysFile = None,
    sitemap: Listings = None,
    feed: Listings = None,
    discover: Annotated[
        list[str] | None, Option(metavar="URL", help="Find the sitemaps and feeds of this site.")
    ] = None,
    follow: Annotated[
        list[str] | None, Option(metavar="URL", help="Follow the links from here to all pages below it.")
    ] = None,
    import_file: Annotated[
        str | None,
        Option("--import", metavar="FILE", help="The list of another program, or a web archive."),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what would be added.")] = False,
    dbt: Annotated[
        str | None, Option(metavar="DIR", help="Add the models of a dbt project, by its folder target.")
    ] = None,
    source: Annotated[str | None, Option(metavar="NAME", help="Source of the items; default: first.")] = None,
    weight: Annotated[float, Option(metavar="W", help="Importance.")] = 1.0,
    cost: Annotated[float, Option(metavar="C", help="Cost of one poll.")] = 1.0,
    min_interval: MinInterval = None,
    max_interval: MaxInterval = None,
    selector: Selector = None,
    allow_private: project.AllowPrivate = False,
    sets: project.SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Register items; items that are already registered do not change."""
    documents = {"sitemaps": sitemap, "feeds": feed, "discover": discover, "follow": follow}
    listings = {name: list(urls) for name, urls in documents.items() if urls}
    if dbt is not None:
        if keys or file or listings or import_file or dry_run:
            raise UsageError("--dbt: not with other items")
        add_models(dbt, source, sets, as_json=as_json)
        return
    if not (keys or file or listings or import_file):
        words = "URLs, --file, --sitemap, --feed, --discover, --follow, --import or --dbt"
        raise UsageError(f"nothing to add: give {words}")
    change = _item_change(weight, cost, min_interval, max_interval)
    imported = None if import_file is None else _read_import(import_file)
    if imported is not None and imported.feeds:
        listings["feeds"] = [*listings.get("feeds", []), *imported.feeds]
    with project.open_project(sets, project.private_overrides(allow_private)) as engine:
        if imported is not None:
            imported = without_bad_keys(engine, imported, source)
            for words in imported.skipped:
                print_note(f"{import_file}: {words}")
        refused = RefusedKeys(engine, source)
        wanted = refused.watch(_read_keys(keys, file))
        if dry_run:
            preview_addition(engine, list(wanted), imported, listings, source, as_json=as_json)
            refused.report()
            return
        new, polls = _add_keys(engine, wanted, source, change, selector), None
        if imported is not None:
            of_import, polls = add_imported(engine, imported, source)
            new += of_import
        of_listings, failed = _add_listings(engine, listings, source)
        total = sum(count.items for count in engine.store.items.counts())
    _report_added(new + of_listings, total, polls, failed, as_json=as_json)
    refused.report()
    if failed is not None:
        raise failed
    if allow_private and not project.is_private_allowed():
        print_note(f"'afresh run' needs --allow-private too, or {project.where_private_is_allowed()}")


def _read_import(path: str) -> ImportedList:
    from afresh.cli.engine.imports.imported import read_import

    return read_import(path)


def _add_keys(
    engine: Engine, keys: Iterable[str], source: str | None, settings: ItemChange, selector: str | None
) -> int:
    """Add items with these settings; return how many are new."""
    longest_s = settings.max_interval_s
    return engine.add(
        keys,
        source=source,
        weight=1.0 if settings.weight is None else settings.weight,
        cost=1.0 if settings.cost is None else settings.cost,
        min_interval_s=settings.min_interval_s or 0.0,
        max_interval_s=math.inf if longest_s is None else longest_s,
        selector=selector or "",
    )


def _add_listings(
    engine: Engine, listings: Mapping[str, list[str]], source: str | None
) -> tuple[int, ListingError | None]:
    """Add the items of documents and sites; return how many are new, and the error about those that could not
    be read, if there are any."""
    if not listings:
        return 0, None
    budget, counts = engine.settings.budget, engine.store.items.counts()
    if budget.each_item:
        words = budget.describe_requests(sum(count.items for count in counts if count.status == "active"))
        print_note(f"the budget is {words}; to read now, give --set budget.requests=1/s")
    try:
        return engine.add_listings(source=source, limit_s=math.inf, **listings), None
    except ListingError as error:
        return error.new, error


def _report_added(
    new: int, total: int, polls: int | None, failed: ListingError | None, *, as_json: bool
) -> None:
    """Print how many items are new and how many there are; ``polls`` is the number of imported polls, None
    without an import."""
    if as_json:
        problems = {} if failed is None else failed.problems
        shown = {hide_credentials(url): hide_credentials(words) for url, words in problems.items()}
        unread = {"unread": shown} if failed is not None else {}
        print_json({"new": new, "items": total, **({} if polls is None else {"polls": polls}), **unread})
    past = f", {format_count(polls, 'past poll')}" if polls else ""
    print_note(f"{new:,} new, {format_count(total, 'item')} in all{past}")


def remove(
    keys: Keys = None,
    file: KeysFile = None,
    match: Match = None,
    source: project.OfSource = None,
    status: WithStatus = None,
) -> None:
    """Remove items and their copies."""
    wanted = _Wanted("remove", keys, file, match, source, status)
    with project.open_project() as engine:
        found, unknown = wanted.find(engine), list[str]()
        for name, chosen in found:
            unknown += engine.remove(chosen, source=name)
    _report_done("removed", sum(len(chosen) for _, chosen in found), unknown)


def set_items(
    keys: Keys = None,
    file: KeysFile = None,
    match: Match = None,
    source: project.OfSource = None,
    status: WithStatus = None,
    weight: Annotated[float | None, Option(metavar="W", help="Importance.")] = None,
    cost: Annotated[float | None, Option(metavar="C", help="Cost of one poll.")] = None,
    min_interval: MinInterval = None,
    max_interval: MaxInterval = None,
    selector: Selector = None,
    pause: Annotated[bool, Option("--pause", help="Do not poll the items until they are resumed.")] = False,
    resume: Annotated[bool, Option("--resume", help="Poll again: paused, gone or refused items.")] = False,
    poll_now: Annotated[bool, Option("--poll-now", help="Poll the items as soon as possible.")] = False,
) -> None:
    """Change the settings of items; a running engine applies them within a second."""
    from afresh.sources.change_detection import Recipe
    from afresh.values.clock import SystemClock
    from afresh.values.items import ItemChange

    wanted = _Wanted("set", keys, file, match, source, status)
    if selector:
        Recipe().for_item(selector)  # raises an error if it is not a selector
    if pause and (resume or poll_now):
        raise UsageError("--pause goes with neither --resume nor --poll-now")
    change = replace(
        _item_change(weight, cost, min_interval, max_interval),
        selector=selector,
        status="paused" if pause else "active" if resume else None,
        due_s=SystemClock().now_s() if poll_now or resume else None,
    )
    if change == ItemChange():
        raise UsageError("nothing to set: say what is to change, such as --weight 3 or --pause")
    with project.open_project() as engine:
        found, unknown = wanted.find(engine), list[str]()
        if poll_now and not resume:
            _refuse_if_not_polled(engine, found)
        with _naming_options():
            for name, chosen in found:
                unknown += engine.set(chosen, change, source=name)
    _report_done("changed", sum(len(chosen) for _, chosen in found), unknown)


def _refuse_if_not_polled(engine: Engine, found: list[tuple[str | None, list[str]]]) -> None:
    """Raise ``UsageError`` if one of the items is paused, gone or refused, as the API does."""
    for source, keys in found:
        ids = list(engine.store.items.ids(keys, source).values())
        other = [item for item in engine.store.items.by_id(ids) if item.status != "active"]
        if other:
            more = f" (and {format_count(len(other) - 1, 'other item')})" if len(other) > 1 else ""
            raise UsageError(
                f"{other[0].key} is {other[0].status}{more}: it is not polled; add --resume to poll it again"
            )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The items that the options of a command name: by their keys, or by ``--match`` and ``--status``."""

    verb: str
    keys: list[str] | None
    file: str | None
    match: str | None
    source: str | None
    status: str | None

    def __post_init__(self) -> None:
        is_selection = self.match is not None or self.status is not None
        if is_selection and (self.keys or self.file):
            raise UsageError("--match and --status select items: not with URLs or --file")
        if not is_selection and not (self.keys or self.file):
            every = " (--match '*' for all of them)" if self.source else ""
            raise UsageError(f"nothing to {self.verb}: give URLs, --file, --match or --status{every}")

    def find(self, engine: Engine) -> list[tuple[str | None, list[str]]]:
        """Return tuples (source or None if it is not said, keys)."""
        from afresh.engine.reporting.item_selection import selected_keys

        if self.match is None and self.status is None:
            chosen = list(dict.fromkeys(_read_keys(self.keys, self.file)))
            if not chosen and self.file != "-":  # a pipe may have nothing to say
                raise UsageError(f"nothing to {self.verb}: {self.file} names no item")
            return [(project.known_source(engine, self.source), chosen)]
        selection = read_selection(engine, self.match, self.source, self.status)
        return list(selected_keys(engine.store, selection).items())


def _item_change(
    weight: float | None, cost: float | None, min_interval: str | None, max_interval: str | None
) -> ItemChange:
    """Return the change of an item that these options ask for; raise ``UsageError`` if one is invalid."""
    from afresh.values.items import ItemChange

    shortest, longest = (
        None if text is None else read_duration(option, text, 0.0)
        for option, text in (("--min-interval", min_interval), ("--max-interval", max_interval))
    )
    if shortest is not None and longest is not None and shortest > longest:
        raise UsageError(f"--min-interval {min_interval} is more than --max-interval {max_interval}")
    with _naming_options():
        return ItemChange(weight=weight, cost=cost, min_interval_s=shortest, max_interval_s=longest)


@contextmanager
def _naming_options() -> Iterator[None]:
    """Convert an ``InputError`` about a polling interval to a ``UsageError`` that names the option."""
    try:
        yield
    except InputError as error:
        words = str(error).replace("min_interval_s", "--min-interval")
        raise UsageError(words.replace("max_interval_s", "--max-interval")) from None


def _read_keys(keys: list[str] | None, file: str | None) -> Iterator[str]:
    yield from keys or []
    if file is not None:
        yield from (line for _, line in read_lines(file, "an item"))


def _report_done(verb: str, wanted: int, unknown: list[str]) -> None:
    """Print how many items were removed or changed (``verb``); raise ``UsageError`` if some are unknown."""
    if unknown:
        shown = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
        are = "is" if len(unknown) == 1 else "are"
        rest = "nothing was done" if len(unknown) == wanted else "the others were done"
        raise UsageError(f"{len(unknown):,} of these items {are} not known: {shown}; {rest}")
    print_note(f"{format_count(wanted, 'item')} {verb}")
