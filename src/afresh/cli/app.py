"""The command line: one Typer application, and one place where errors become words and exit codes.

Command modules keep NumPy and everything heavier inside their functions, so that ``afresh --help``
answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from afresh.cli.budget import budget
from afresh.cli.demo import demo
from afresh.cli.engine_commands import ENGINE_COMMANDS
from afresh.cli.entry import main as main
from afresh.cli.estimate import estimate
from afresh.cli.history import history
from afresh.cli.interruption import INTERRUPTION
from afresh.cli.money import money
from afresh.cli.plan import plan
from afresh.cli.probes import probes
from afresh.cli.replay import replay
from afresh.cli.reproduce import reproduce
from afresh.cli.simulate import simulate
from afresh.values.errors import AfreshError, UsageError
from afresh.version import __version__

app = typer.Typer(
    name="afresh",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Keep a local copy of remote data as fresh as a budget allows, and see what budget is worth paying.",
)
for name, keeper in ENGINE_COMMANDS.items():
    app.command(name, rich_help_panel="Keep copies fresh")(keeper)
for planner in (plan, budget, money, estimate, probes):
    app.command(rich_help_panel="Plan from files")(planner)
for prover in (demo, replay, simulate, reproduce):
    app.command(rich_help_panel="Prove it")(prover)
app.add_typer(history, name="history", rich_help_panel="Prove it")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"afresh {__version__}")
        raise typer.Exit


@app.callback()
def options(
    directory: Annotated[
        Path | None, typer.Option("-C", metavar="DIR", help="Run as if started in DIR.")
    ] = None,
    version: Annotated[  # noqa: ARG001  # its callback does the work
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command, as in git."""
    # Our matrices are long and narrow: a second thread of the linear algebra would only spin beside the work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if directory is not None:
        try:
            os.chdir(directory)
        except OSError as error:
            raise UsageError(f"-C {directory}: {error.strerror}") from None


@cache  # a process that performs many commands, as tests do, would spend most of its time here
def _command() -> Callable[[], object]:
    return typer.main.get_command(app)


def perform() -> None:
    """Perform the command of the command line; ``entry.main`` does that and takes the signals too."""
    try:
        _command()()
    except AfreshError as error:
        if INTERRUPTION.was_raised:  # what it complains of is that it was interrupted
            raise
        typer.secho("afresh: ", fg="red", nl=False, err=True)
        typer.echo(str(error), err=True)
        sys.exit(error.exit_code)
