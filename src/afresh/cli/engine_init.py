"""``afresh init``: a new project folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to make; by default this one.")
    ] = Path(),
) -> None:
    """Make a project: a commented afresh.toml, an empty store, and a token for the dashboard."""
    from afresh.engine.app import init_folder
    from afresh.web.token import make_token_file

    path = init_folder(folder)
    make_token_file(folder)
    typer.echo(f"made {path}: set the budget there, then 'afresh add' and 'afresh run'", err=True)
