"""``afresh store check|vacuum|backup|copy|sizes``: care for the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from afresh.cli.engine_project import ListJson, open_project
from afresh.cli.summary import print_json
from afresh.values.errors import AfreshError, UsageError, one_of

_NEEDS = {"check": 0, "vacuum": 0, "sizes": 0, "backup": 1, "copy": 2}


def store(
    action: Annotated[str, typer.Argument(metavar="check|vacuum|backup|copy|sizes", help="What to do.")],
    first: Annotated[
        str | None, typer.Argument(metavar="FILE|FROM", help="Where the backup goes; the store to copy.")
    ] = None,
    second: Annotated[str | None, typer.Argument(metavar="TO", help="copy: the store to make.")] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", help="check: hash only so many contents.", min=0),
    ] = None,
    as_json: ListJson = False,
) -> None:
    """Check, shrink, back up or copy the store, also beside a running engine."""
    one_of("action", action, tuple(_NEEDS))
    given = [text for text in (first, second) if text is not None]
    if len(given) != _NEEDS[action]:
        raise UsageError("'store backup FILE' needs a file, 'store copy FROM TO' two stores, others nothing")
    if action == "copy":
        _copy(*given, as_json=as_json)
    else:
        _care(action, given, sample, as_json)
    typer.echo(f"{action}: done", err=True)


def _care(action: str, given: list[str], sample: int | None, as_json: bool) -> None:
    from dataclasses import asdict

    with open_project() as engine:
        upkeep = engine.store.upkeep
        if action == "check":
            problems = upkeep.check(sample)
            if as_json:
                print_json({"problems": problems})
            for words in problems:
                typer.echo(words, err=True)
            if problems:
                raise AfreshError(f"the store has {len(problems)} problems")
        elif action == "vacuum":
            upkeep.vacuum()
        elif action == "backup":
            upkeep.backup(Path(given[0]))
        if action == "sizes" or (as_json and action != "check"):
            print_json(asdict(upkeep.stats()))


def _copy(source: str, target: str, *, as_json: bool) -> None:
    """Everything of one store into an empty one; run again after it was stopped, it goes on."""
    from afresh.cli.progress import Progress
    from afresh.stores.copying import copy_store
    from afresh.stores.opening import open_tables

    with (
        open_tables(_address(source), create=False) as whence,
        open_tables(_address(target)) as whither,
        Progress("copying", 1.0) as progress,
    ):
        rows = copy_store(whence.tables, whither.tables, lambda done, total: progress.reach(done / total))
    if as_json:
        print_json({"rows": rows})


def _address(text: str) -> str:
    """A store's address, or that in a variable: passwords do not belong on command lines."""
    if not text.startswith("env:"):
        return text
    found = os.environ.get(text.removeprefix("env:"))
    if not found:
        raise UsageError(f"{text}: there is no such variable in the environment")
    return found
