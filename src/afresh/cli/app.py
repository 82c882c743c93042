"""The command line: one Typer application, and one place where errors become words and exit codes."""

from __future__ import annotations

import typer

app = typer.Typer(name="afresh", no_args_is_help=True)


def main() -> None:
    """Run the command line."""
    app()
