"""The project folder that the engine's commands work in: settings from its file, the environment, options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from afresh.values.errors import UsageError

if TYPE_CHECKING:
    from afresh.engine.engine import Engine

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
    from afresh.engine.settings import environment_overrides

    found = environment_overrides(os.environ)
    for text in sets or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text!r}: write KEY=VALUE, such as budget.requests=2/s")
        found[key.strip()] = value.strip()
    return found | dict(more or {})


def open_project(sets: list[str] | None = None, more: Mapping[str, str] | None = None) -> Engine:
    """The engine of the folder that we are in."""
    from afresh.engine.app import open_engine

    return open_engine(Path(), overrides_of(sets, more), secrets=os.environ.get)


def source_overrides(settings: Mapping[str, str]) -> dict[str, str]:
    """Options that go to every HTTP source of the project's file, as overrides."""
    from afresh.engine.app import read_folder

    if not settings:
        return {}
    names = [
        table.settings.name
        for table in read_folder(Path(), overrides_of(None)).sources
        if table.settings.kind == "http"
    ]
    return {f"source.{name}.{key}": value for name in names for key, value in settings.items()}
