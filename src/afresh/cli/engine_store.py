"""``afresh store check|vacuum|backup``: care for the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from afresh.cli.engine_project import ListJson, open_project
from afresh.cli.summary import print_json
from afresh.values.errors import AfreshError, UsageError, one_of


def store(
    action: Annotated[str, typer.Argument(metavar="check|vacuum|backup|sizes", help="What to do.")],
    target: Annotated[Path | None, typer.Argument(metavar="FILE", help="Where the backup goes.")] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", help="check: hash only so many contents.", min=0),
    ] = None,
    as_json: ListJson = False,
) -> None:
    """Check, shrink or back up the store, also beside a running engine."""
    from dataclasses import asdict

    one_of("action", action, ("check", "vacuum", "backup", "sizes"))
    if (action == "backup") != (target is not None):
        raise UsageError("'afresh store backup FILE' needs a file, the others take none")
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
        elif target is not None:
            upkeep.backup(target)
        if action == "sizes" or (as_json and action != "check"):
            print_json(asdict(upkeep.stats()))
    typer.echo(f"{action}: done", err=True)
