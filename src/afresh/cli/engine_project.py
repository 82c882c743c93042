"""The project folder that the engine's commands work in: settings from its file, the environment, options."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from afresh.cli.interruption import INTERRUPTION
from afresh.values.errors import UsageError

if TYPE_CHECKING:
    from afresh.engine.engine import Engine
    from afresh.sources.http.settings import HttpSettings

CLEAR_LINE = "\r\x1b[K"
Sets: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as budget.requests=2/s."),
]
AllowPrivate: TypeAlias = Annotated[
    bool, typer.Option("--allow-private", help="Allow private and loopback addresses.")
]
ListJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]


def overrides_of(sets: list[str] | None, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment's overrides, then those of ``--set``, then those of other options.

    >>> overrides_of(["plan.policy=uniform"])["plan.policy"]
    'uniform'
    """
    from afresh.engine.settings.overrides import SettingWithOrigin, environment_overrides

    found = environment_overrides(os.environ)
    for text in sets or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text!r}: write KEY=VALUE, such as budget.requests=2/s")
        found[key.strip()] = SettingWithOrigin(value.strip(), f"--set {text}")
    return found | dict(more or {})


def open_project(
    sets: list[str] | None = None, more: Mapping[str, str] | None = None, *, reading: bool = False
) -> Engine:
    """The engine of the folder that we are in; ``reading``: a store that may only be read will do."""
    from afresh.engine.app import open_engine

    set_up_logs("plain", logging.WARNING)
    engine = open_engine(Path(), overrides_of(sets, more), secrets=os.environ.get, reading=reading)
    engine.on_stop = INTERRUPTION.stopping_by
    return engine


def set_up_logs(kind: str, level: int) -> None:
    """Log from this level on standard error: ``plain`` lines, or ``json`` objects."""
    from afresh.engine.logs import LOGGER, JsonLines, PlainLines

    handler = _Lines()
    handler.setFormatter(JsonLines() if kind == "json" else PlainLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.propagate = False
    LOGGER.setLevel(level)


class _Lines(logging.Handler):
    """Log lines on standard error; on a terminal they go over the line of progress, drawn again below."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        over = CLEAR_LINE if sys.stderr.isatty() else ""
        sys.stderr.write(f"{over}{self.format(record)}\n")
        sys.stderr.flush()


def source_overrides(options: Mapping[str, tuple[str, str | None]]) -> dict[str, str]:
    """Options that go to every HTTP source of the project's file: by setting, the option and what it says."""
    from afresh.engine.settings.overrides import SettingWithOrigin

    given = {
        key: SettingWithOrigin(text, f"{option} {text}") for key, (option, text) in options.items() if text
    }
    names = [table.name for table in _http_sources()] if given else []
    return {f"source.{name}.{key}": said for name in names for key, said in given.items()}


def private_overrides(allowed: bool) -> dict[str, str]:
    """What ``--allow-private`` means."""
    return source_overrides({"allow_private": ("--allow-private", "true" if allowed else None)})


def allows_private() -> bool:
    """Whether the settings themselves allow private addresses."""
    return all(table.allow_private for table in _http_sources())


def _http_sources() -> list[HttpSettings]:
    from afresh.engine.app import read_folder
    from afresh.sources.http.settings import HttpSettings

    tables = read_folder(Path(), overrides_of(None)).sources
    return [table.settings for table in tables if isinstance(table.settings, HttpSettings)]
