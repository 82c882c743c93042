"""``afresh config check``: whether the settings would work, without asking any source for anything."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.engine_project import ListJson, Sets, overrides_of
from afresh.cli.summary import number, print_json, print_summary
from afresh.values.errors import AfreshError, StoreMissingError, StoreReadOnlyError, UsageError, one_of
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.engine.settings.tables import Settings, SourceTable


def config(
    action: Annotated[str, typer.Argument(metavar="check", help="What to do.")],
    sets: Sets = None,
    as_json: ListJson = False,
) -> None:
    """Check the settings: the file, secrets, the store, the dashboard's token, sources and their hooks.

    Exits with 2 if anything is wrong, and says all of it.
    """
    one_of("action", action, ("check",))
    from afresh.engine.app import read_folder
    from afresh.engine.settings.describing import settings_as_dict

    settings = read_folder(Path(), overrides_of(sets))
    found, problems = _looked_at(settings)
    if as_json:
        print_json({"settings": settings_as_dict(settings), "problems": problems})
    elif not problems:
        print_summary("afresh.toml is right", [("budget", _budget(settings)), *found])
    for problem in problems:
        typer.secho("afresh: ", fg="red", nl=False, err=True)
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(UsageError.exit_code)


def _looked_at(settings: Settings) -> tuple[list[tuple[str, str]], list[str]]:
    """What each part is, and what is wrong with those that would not work."""
    parts: list[tuple[str, Callable[[], str]]] = [
        ("store", lambda: _store(settings)),
        ("web", lambda: _web(settings)),
    ]
    parts += [
        (f"source {table.settings.name}", lambda table=table: check_source(table))  # type: ignore[misc]
        for table in settings.sources
    ]
    found, problems = [], []
    for name, look in parts:
        try:
            found.append((name, look()))
        except AfreshError as error:
            problems.append(f"{name}: {error}")
    return found, problems


def _budget(settings: Settings) -> str:
    each = " for each item" if settings.budget.each_item else ""
    return f"{number(settings.budget.requests)}/s in requests{each}"


def _store(settings: Settings) -> str:
    """Opened if it is there; nothing is made."""
    from afresh.stores.opening import open_store

    try:
        with open_store(settings.store.url, create=False, read_only=True) as store:
            items = sum(count.items for count in store.items.counts())
    except StoreMissingError as error:
        if error.__cause__ is not None:  # it could not even be looked for: no such database, a wrong password
            raise
        return "not there yet: it will be made"
    except StoreReadOnlyError:  # all that opening for reading cannot do is to upgrade
        return "of an older afresh: the next run brings it up to date"
    return format_count(items, "item")


def _web(settings: Settings) -> str:
    from afresh.web.server import check_reach
    from afresh.web.token import find_token

    token = find_token(settings.web.token, Path(), os.environ.get)
    check_reach(settings.web.host, token)
    rights = "with a token for writing" if token else "reading only: there is no token"
    return f"{settings.web.host}:{settings.web.port}, {rights}"


def check_source(table: SourceTable) -> str:
    """What it is; built as a run would build it and let go again, its hook looked for."""
    from afresh.sources.context import SourceContext

    async def build() -> None:
        source = table.kind.build(table.settings, SourceContext(resolver=os.environ.get))
        await source.close()

    asyncio.run(build())
    return table.settings.kind + _hook(table.on_change)


def _hook(hook: tuple[str, ...] | str | None) -> str:
    """Who is told of changes, if it can be found."""
    from afresh.engine.runner.hooks import find_hook_function

    if isinstance(hook, str):
        find_hook_function(hook)
    elif hook is not None and shutil.which(hook[0]) is None:
        raise UsageError(f"on_change: there is no program {hook[0]!r}")
    return "" if hook is None else f", tells {hook if isinstance(hook, str) else hook[0]} of changes"
