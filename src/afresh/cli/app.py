"""The command line: lists all commands, and converts errors to messages and exit codes.

The modules of commands import NumPy and other large packages inside their functions, so that
``afresh --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from afresh.cli.engine.cluster_commands import cluster
from afresh.cli.engine.copy_commands import export, get
from afresh.cli.engine.external_commands import due, lease, observe
from afresh.cli.engine.feed_commands import changes, consumers
from afresh.cli.engine.hooks_command import hooks
from afresh.cli.engine.item_commands import add, remove, set_items
from afresh.cli.engine.list_command import list_items
from afresh.cli.engine.run_commands import run, serve
from afresh.cli.engine.settings_commands import config, init
from afresh.cli.engine.status_commands import status, why
from afresh.cli.engine.store_command import store
from afresh.cli.entry import main as main
from afresh.cli.help_texts import PlainCommand, PlainGroup
from afresh.cli.interruption import INTERRUPTION
from afresh.cli.planning.budget_command import budget
from afresh.cli.planning.estimate_command import estimate
from afresh.cli.planning.money_command import money
from afresh.cli.planning.plan_command import plan
from afresh.cli.planning.probes_command import probes
from afresh.cli.proving.demo_command import demo
from afresh.cli.proving.history_command import history
from afresh.cli.proving.replay_commands import replay, simulate
from afresh.cli.proving.reproduce_command import reproduce
from afresh.cli.summary import print_error
from afresh.values.errors import AfreshError, UsageError
from afresh.values.extras import missing_package_message
from afresh.version import __version__

app = typer.Typer(
    name="afresh",
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Keep a local copy of remote data as fresh as a budget allows, and see what budget is worth paying.",
)
_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Keep copies fresh": (
        init, add, list_items, remove, set_items, run, status, why, get, changes, consumers, hooks, due,
        lease, observe, export, store, config, serve,
    ),
    "Plan from files": (plan, budget, money, estimate, probes),
    "Prove it": (demo, replay, simulate, reproduce),
}  # fmt: skip
# "set" and "list" are names of types in Python, so that their functions have others.
_NAMES: dict[Callable[..., None], str] = {set_items: "set", list_items: "list"}
for panel, commands in _PANELS.items():
    for command in commands:
        app.command(_NAMES.get(command), rich_help_panel=panel, cls=PlainCommand)(command)
app.add_typer(history, name="history", rich_help_panel="Prove it")
app.add_typer(cluster, name="cluster", rich_help_panel="Keep copies fresh")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"afresh {__version__}")
        raise typer.Exit


@app.callback()
def options(
    directory: Annotated[Path | None, Option("-C", metavar="DIR", help="Run as if started in DIR.")] = None,
    version: Annotated[  # noqa: ARG001  # its callback does the work
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Handle the options that precede the name of the command."""
    # The matrices are long and narrow, so more threads for linear algebra use the processor but gain nothing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if directory is not None:
        try:
            os.chdir(directory)
        except OSError as error:
            raise UsageError(f"-C {directory}: {error.strerror}") from None


@cache  # because this is slow, and the tests perform many commands in one process
def _command() -> Callable[[], object]:
    return typer.main.get_command(app)


def perform() -> None:
    """Perform the command that ``sys.argv`` names. ``entry.main`` must set the signal handlers first."""
    try:
        _command()()
    except AfreshError as error:
        if INTERRUPTION.was_raised:  # the error is a consequence of the interruption
            raise
        print_error(f"{error}{error.option_hint}")
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        message = missing_package_message(error)
        if message is None or INTERRUPTION.was_raised:
            raise
        print_error(message)
        sys.exit(UsageError.exit_code)
