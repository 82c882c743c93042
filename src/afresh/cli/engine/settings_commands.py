"""``afresh init`` creates a project folder; ``afresh config check`` checks its settings without requests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from afresh.cli.engine.project import SetOptions, read_overrides
from afresh.cli.options import PrintJson
from afresh.cli.summary import format_number, print_error, print_json, print_note, print_report
from afresh.values.errors import (
    AfreshError,
    StoreError,
    StoreMissingError,
    StoreReadOnlyError,
    UsageError,
    WrongSettingsError,
    one_of,
)
from afresh.values.formatting import format_bytes, format_count
from afresh.values.printable_text import hide_credentials
from afresh.values.units import format_rate, format_size_rate

if TYPE_CHECKING:
    from afresh.engine.reporting.lag_status import LagStatus
    from afresh.engine.settings.item_views import ItemView
    from afresh.engine.settings.tables import BudgetTable, Settings, SourceTable


def init(
    folder: Annotated[Path, Argument(metavar="DIR", help="Folder to create; default: this one.")] = Path(),
) -> None:
    """Create a project: a commented afresh.toml, an empty store, and a token for the dashboard."""
    from afresh.engine.app import init_folder
    from afresh.web.token import make_token_file

    path = init_folder(folder)
    make_token_file(folder)
    print_note(f"made {path}: set the budget there, then 'afresh add' and 'afresh run'")


def config(
    action: Annotated[str, Argument(metavar="check", help="What to do.")],
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Check the settings: the file, secrets, the store, the token, sources, views and their hooks.

    Exits with 2 if anything is wrong, and prints every problem.
    """
    one_of("action", action, ("check",))
    from afresh.engine.app import read_folder
    from afresh.engine.settings.describing import settings_as_dict

    try:
        settings = read_folder(Path(), read_overrides(sets))
    except WrongSettingsError as error:
        if as_json:
            problems = list(map(hide_credentials, error.problems))
            print_json({"settings": None, "target_lags": None, "problems": problems})
        _fail(error.problems)
    found, problems = _check_parts(settings)
    lags = _read_target_lags(settings)
    problems += [] if lags is None else lags.problems()
    if as_json:
        lag_status = None if lags is None or lags.status is None else asdict(lags.status)
        print_json(
            {
                "settings": settings_as_dict(settings),
                "target_lags": lag_status,
                "unmatched_target_lags": [] if lags is None else list(lags.unmatched.values()),
                "problems": list(map(hide_credentials, problems)),
            }
        )
    elif not problems:
        rows = [("budget", _describe_budget(settings.budget)), *found]
        print_report("afresh.toml is right", rows if lags is None else rows + _lag_rows(lags))
    _fail(problems)


def _fail(problems: Sequence[str]) -> None:
    """Print the problems and end the command, if there are any."""
    for problem in problems:
        print_error(problem)
    if problems:
        raise typer.Exit(UsageError.exit_code)


def _describe_budget(budget: BudgetTable) -> str:
    """Describe every limit of the budget that is set."""
    rate = format_rate(budget.requests)
    parts = [f"{rate.replace('/', '/item/') if budget.each_item else rate} in requests"]
    if budget.bytes is not None:
        parts.append(f"{format_size_rate(budget.bytes)} in bytes")
    if budget.seconds is not None:
        parts.append(f"{format_number(3600.0 * budget.seconds)} s an hour in seconds")
    if budget.money is not None:
        parts.append(f"{format_number(86400.0 * budget.money)} a day in money")
    return "; ".join(parts)


def _check_parts(settings: Settings) -> tuple[list[tuple[str, str]], list[str]]:
    """Check the store, the dashboard, every source and every item view. Return a tuple of two lists: (name,
    description) of each part that works, and the problems of the other parts."""
    found: list[tuple[str, str]] = []
    problems: list[str] = []

    def check_part(name: str, check: Callable[[], str]) -> None:
        try:
            found.append((name, check()))
        except AfreshError as error:
            problems.append(f"{name}: {error}")

    check_part("store", partial(_check_store, settings))
    check_part("web", partial(check_web, settings))
    text = _settings_text()
    for number, table in enumerate(settings.sources):
        words, wrong = _check_parts_of_source(table, number, text)
        problems += wrong
        if not wrong:
            found.append((f"source {table.settings.name}", words))
    for view in settings.views.tables:
        check_part(f"view {view.name}", partial(check_item_view, settings, view))
    return found, problems


def _settings_text() -> str:
    from afresh.engine.settings.parsing import FILE_NAME

    file = Path(FILE_NAME)
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _check_parts_of_source(table: SourceTable, number: int, text: str) -> tuple[str, list[str]]:
    """Check the source of the ``[[source]]`` table with this number in the ``text`` of the settings. Return a
    tuple: its description, and all problems, each with its line."""
    from afresh.engine.settings.parsing import FILE_NAME
    from afresh.engine.settings.problems import find_source_place

    words, problems = "", []
    who = f"source {table.settings.name!r}"
    for key, check in _source_checks(table):
        try:
            words += check()
        except AfreshError as error:
            place = find_source_place(FILE_NAME, text, number, key)
            # The error of a source that cannot be built may begin with its name.
            name = "" if str(error).startswith(who) else f"{who}: "
            problems.append(f"{place}{name}{error}")
    return words, problems


def _has_target(table: SourceTable) -> bool:
    own = table.settings
    return bool(getattr(own, "target_lag", None) or getattr(own, "target_lags", None))


@dataclass(frozen=True, slots=True)
class _TargetLags:
    """Whether the target lags fit, None if it is not known yet, and a text for each name in ``target_lags``
    that fits no view, by the number of its source and the name."""

    status: LagStatus | None
    unmatched: dict[tuple[int, str], str]

    def problems(self) -> list[str]:
        """Return a problem for each name that fits no view, with its line."""
        from afresh.engine.settings.parsing import FILE_NAME
        from afresh.engine.settings.problems import find_source_place

        text = _settings_text()
        return [
            f"{find_source_place(FILE_NAME, text, number, 'target_lags')}{words}"
            for (number, _), words in self.unmatched.items()
        ]


def _read_target_lags(settings: Settings) -> _TargetLags | None:
    """Return what is known of the target lags, by the costs and rates in the store; None without any."""
    from afresh.engine.reporting.lag_status import read_lag_status
    from afresh.engine.scheduler.observed_staleness import read_staleness_reports
    from afresh.stores.opening import open_store
    from afresh.values.clock import SystemClock

    if not any(_has_target(table) for table in settings.sources):
        return None
    try:
        with open_store(settings.store.url, create=False, read_only=True) as store:
            found = read_lag_status(store, settings, SystemClock().now_s())
            seen = read_staleness_reports(store, [table.settings.name for table in settings.sources])
    except StoreError:  # another check reports it
        return _TargetLags(None, {})
    return _TargetLags(found, _unmatched_lags(settings, seen))


def _lag_rows(lags: _TargetLags) -> list[tuple[str, str]]:
    from afresh.cli.engine.lag_lines import lag_rows

    unknown = "not known yet whether they fit the budget: 'afresh run' measures refreshes and rates"
    return lag_rows(lags.status) or [("target lags", unknown)]


def _unmatched_lags(settings: Settings, seen: Mapping[str, Collection[str]]) -> dict[tuple[int, str], str]:
    """Return a text for each name in ``target_lags`` that fits none of the views ``seen`` (by source), by the
    number of the source and the name. Views that no run has seen yet are not known."""
    from afresh.sources.views.settings import ViewSettings

    return {
        (number, pattern): f"source {own.name}: no view is named like {pattern!r}"
        for number, own in enumerate(table.settings for table in settings.sources)
        if isinstance(own, ViewSettings) and own.name in seen
        for pattern in own.unmatched_lags(seen[own.name])
    }


def _check_store(settings: Settings) -> str:
    """Open the store read-only, without creating it, and return a short description of it."""
    from afresh.stores.opening import open_store

    most = format_bytes(settings.store.max_size)
    try:
        with open_store(settings.store.url, create=False, read_only=True) as store:
            items = sum(count.items for count in store.items.counts())
            used = store.upkeep.used_bytes()
    except StoreMissingError as error:
        if error.__cause__ is not None:  # a server refused: there is no such database, or a wrong password
            raise
        return f"not there yet: it will be made, and take at most {most}"
    except StoreReadOnlyError:  # opening read-only fails only if the store needs an upgrade
        return "of an older afresh: the next run brings it up to date"
    return f"{format_count(items, 'item')}, {format_bytes(used)} of at most {most}"


def check_web(settings: Settings) -> str:
    """Describe where the dashboard listens, and who may change things there. Raise ``UsageError`` if other
    machines could reach it and there is no token."""
    from afresh.web.reach import check_reach, needs_token_to_read
    from afresh.web.token import find_token

    token = find_token(settings.web.token, Path(), os.environ.get)
    web = settings.web
    hooks = _check_webhooks(settings)
    check_reach(web.host, token, web.read_token)
    use = "reading and writing" if needs_token_to_read(web.host, web.read_token) else "writing"
    rights = f"with a token for {use}" if token else "reading only: there is no token"
    return f"{settings.web.host}:{settings.web.port}, {rights}{hooks}"


def _check_webhooks(settings: Settings) -> str:
    """Return words that count the webhooks; raise ``UsageError`` if a secret or source does not exist."""
    if not settings.web.webhook:
        return ""
    from afresh.engine.receiving.webhooks import open_webhooks

    return f", receives {format_count(len(open_webhooks(settings, os.environ.get)), 'webhook')}"


def check_source(table: SourceTable) -> str:
    """Check a source, its hook and its notifications, and return a short description. Raise ``UsageError`` at
    the first problem."""
    return "".join(check() for _, check in _source_checks(table))


def _source_checks(table: SourceTable) -> list[tuple[str, Callable[[], str]]]:
    """Return a tuple (setting, check) for each part of a source. The source itself has no setting."""
    return [
        ("", partial(_check_build, table)),
        ("on_change", partial(_check_hook, table.on_change, "on_change")),
        ("notify", partial(_check_notify, table)),
    ]


def _check_build(table: SourceTable) -> str:
    """Build a source as ``afresh run`` does, and close it; return its kind."""
    import asyncio

    from afresh.sources.context import SourceContext

    async def build() -> None:
        source = table.kind.build(table.settings, SourceContext(resolver=os.environ.get))
        await source.close()

    asyncio.run(build())
    return table.settings.kind


def _check_notify(table: SourceTable) -> str:
    """Return words that count the addresses of ``notify``; raise ``UsageError`` if one is wrong, or if the
    extra that sends messages is missing."""
    from afresh.engine.runner.notify.notify_address import open_addresses

    found = open_addresses(table, os.environ.get)
    words = "1 address" if len(found) == 1 else f"{len(found)} addresses"
    return f", notifies {words}" if found else ""


def check_item_view(settings: Settings, view: ItemView) -> str:
    """Check that the items of a view exist, and its hook; return a short description. Raise ``UsageError``
    with the line of the first item that does not exist, or if an item has the name of the view."""
    from afresh.engine.settings.parsing import FILE_NAME

    known, name_is_item = _find_items(settings, view)
    if name_is_item:
        raise UsageError(f"{view.name!r} is also the key of an item: give the view another name")
    unknown = [(key, line) for key, line in zip(view.items, view.lines, strict=True) if key not in known]
    if unknown:
        key, line = unknown[0]
        more = f" ({len(unknown) - 1:,} more are not there)" if len(unknown) > 1 else ""
        problem = f"there is no item {key!r}{more}: 'afresh add' makes one"
        raise UsageError(f"{FILE_NAME}, line {line}: {problem}")
    return format_count(len(view.items), "item") + _check_hook(view.on_stale, "on_stale")


def _find_items(settings: Settings, view: ItemView) -> tuple[Collection[str], bool]:
    """Return a tuple: which items of the view exist, and whether an item has the name of the view. If the
    store cannot be read, which another check reports, every item counts as existing."""
    from afresh.stores.opening import open_store

    try:
        with open_store(settings.store.url, create=False, read_only=True) as store:
            known = {item.key for item in store.items.find([*view.items, view.name])}
    except StoreMissingError:
        return (), False
    except StoreError:
        return view.items, False
    return known, view.name in known


def _check_hook(hook: tuple[str, ...] | str | None, setting: str) -> str:
    """Return words that name the hook in ``setting``; raise ``UsageError`` if the hook does not exist."""
    from afresh.sources.python.user_function import find_function

    if isinstance(hook, str):
        find_function(hook, setting)
    elif hook is not None and shutil.which(hook[0]) is None:
        raise UsageError(f"{setting}: there is no program {hook[0]!r}")
    return "" if hook is None else f", tells {hook if isinstance(hook, str) else hook[0]} of changes"
