"""Opens the engine of a project folder, with settings from its file, the environment and the options."""

from __future__ import annotations

import logging
import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from typer import Option

from afresh.cli.interruption import INTERRUPTION
from afresh.values.errors import UsageError, one_of

if TYPE_CHECKING:
    from afresh.engine.engine import Engine
    from afresh.engine.logs import EqualFailures
    from afresh.sources.http.settings import HttpSettings

CLEAR_LINE = "\r\x1b[K"
SetOptions: TypeAlias = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="A setting, such as budget.requests=2/s.")
]
OfSource: TypeAlias = Annotated[
    str | None,
    Option("--source", metavar="NAME", help="The items' source; needed if several sources have such keys."),
]
AllowPrivate: TypeAlias = Annotated[
    bool, Option("--allow-private", help="Allow private and loopback addresses.")
]


def read_overrides(sets: list[str] | None, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings that override those of the file ``afresh.toml``, by key.

    They come from the environment, from the ``--set`` options (``sets``) and from ``more``. If two of these
    have the same setting, the later one in this order applies.

    >>> read_overrides(["plan.policy=uniform"])["plan.policy"]
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
    """Open the engine of the project in the current folder. See ``read_overrides`` for the parameters.

    With ``reading`` the store is opened read-only, which works without write permission."""
    from afresh.engine.app import open_engine

    set_up_logs("plain", logging.WARNING)
    engine = open_engine(Path(), read_overrides(sets, more), secrets=os.environ.get, reading=reading)
    engine.on_stop = INTERRUPTION.stopping_by
    return engine


def known_source(engine: Engine, name: str | None) -> str | None:
    """Return the option ``--source``; raise ``UsageError`` if neither settings nor items have this source."""
    if name is None:
        return None
    names = [table.settings.name for table in engine.settings.sources]
    names += [count.source for count in engine.store.items.counts()]
    return one_of("source", name, dict.fromkeys(names))


def set_up_logs(kind: str, level: int) -> None:
    """Write log records of this level and above to standard error, as ``plain`` lines or ``json`` objects."""
    from afresh.engine.logs import LOGGER, EqualFailures, JsonLines, PlainLines

    # Programs, and people who look for a fault, get every line.
    handler = _StderrHandler(EqualFailures() if kind == "plain" and level >= logging.INFO else None)
    handler.setFormatter(JsonLines() if kind == "json" else PlainLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.propagate = False
    LOGGER.setLevel(level)


class _StderrHandler(logging.Handler):
    """Writes log lines to standard error. On a terminal it clears the progress line first."""

    def __init__(self, failures: EqualFailures | None) -> None:
        super().__init__()
        self._failures = failures

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless it is only counted."""
        start = CLEAR_LINE if sys.stderr.isatty() else ""
        for line in [record] if self._failures is None else self._failures.pass_on(record):
            sys.stderr.write(f"{start}{self.format(line)}\n")
        sys.stderr.flush()


def source_overrides(options: Mapping[str, tuple[str, str | None]]) -> dict[str, str]:
    """Return the overrides that apply options of a command to every HTTP source of the project.

    ``options`` maps each setting to a tuple (name of the option, its text or None if it is not given)."""
    from afresh.engine.settings.overrides import SettingWithOrigin

    given = {
        key: SettingWithOrigin(text, f"{option} {text}") for key, (option, text) in options.items() if text
    }
    names = [table.name for table in _http_sources()] if given else []
    return {f"source.{name}.{key}": said for name in names for key, said in given.items()}


def private_overrides(allowed: bool) -> dict[str, str]:
    """Return the overrides that allow private addresses in every HTTP source; empty if not ``allowed``."""
    return source_overrides({"allow_private": ("--allow-private", "true" if allowed else None)})


def is_private_allowed() -> bool:
    """Return whether the settings, without options, allow private addresses in every HTTP source."""
    return all(table.allow_private for table in _http_sources())


def where_private_is_allowed() -> str:
    """Return how ``afresh.toml`` allows private addresses. If it has no table of a source, show one."""
    from afresh.engine.settings.parsing import FILE_NAME

    try:
        is_written = "source" in tomllib.loads(Path(FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        is_written = False
    if is_written:
        return "allow_private = true in the [[source]] table of afresh.toml"
    name = _http_sources()[0].name
    table = f'\n  [[source]]\n  name = "{name}"\n  allow_private = true'
    return f"these three lines at the end of afresh.toml, which has no [[source]] table yet:{table}"


def _http_sources() -> list[HttpSettings]:
    from afresh.engine.app import read_folder
    from afresh.sources.http.settings import HttpSettings

    tables = read_folder(Path(), read_overrides(None)).sources
    return [table.settings for table in tables if isinstance(table.settings, HttpSettings)]
