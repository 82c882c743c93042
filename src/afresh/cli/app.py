"""The command line: lists all commands, and converts errors to messages and exit codes.

The module of a command is imported when the command is used, and these modules import NumPy and other large
packages inside their functions, so that ``afresh --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from afresh.cli.engine.cluster_commands import cluster
from afresh.cli.entry import main as main
from afresh.cli.help_texts import LateCommand, PlainGroup
from afresh.cli.interruption import INTERRUPTION
from afresh.cli.proving.history_command import history
from afresh.cli.summary import print_error
from afresh.values.errors import AfreshError, UsageError
from afresh.values.extras import missing_package_message
from afresh.version import __version__

# The commands of each panel of the help: their names, and their functions with the modules of these.
_PANELS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Keep copies fresh": (
        ("init", "engine.settings_commands:init"),
        ("add", "engine.item_commands:add"),
        ("list", "engine.list_command:list_items"),
        ("remove", "engine.item_commands:remove"),
        ("set", "engine.item_commands:set_items"),
        ("run", "engine.run_commands:run"),
        ("status", "engine.status_commands:status"),
        ("why", "engine.status_commands:why"),
        ("get", "engine.copy_commands:get"),
        ("changes", "engine.feed_commands:changes"),
        ("consumers", "engine.feed_commands:consumers"),
        ("hooks", "engine.hooks_command:hooks"),
        ("due", "engine.external_commands:due"),
        ("lease", "engine.external_commands:lease"),
        ("observe", "engine.external_commands:observe"),
        ("export", "engine.copy_commands:export"),
        ("store", "engine.store_command:store"),
        ("config", "engine.settings_commands:config"),
        ("serve", "engine.run_commands:serve"),
    ),
    "Plan from files": (
        ("plan", "planning.plan_command:plan"),
        ("budget", "planning.budget_command:budget"),
        ("money", "planning.money_command:money"),
        ("estimate", "planning.estimate_command:estimate"),
        ("probes", "planning.probes_command:probes"),
    ),
    "Prove it": (
        ("demo", "proving.demo_command:demo"),
        ("replay", "proving.replay_commands:replay"),
        ("simulate", "proving.replay_commands:simulate"),
        ("reproduce", "proving.reproduce_command:reproduce"),
    ),
}


class Program(PlainGroup):
    """The program with all its commands."""

    def __init__(self, *, commands: Mapping[str, Any], **given: Any) -> None:
        late = {
            name: LateCommand(name, f"afresh.cli.{place}", panel)
            for panel, places in _PANELS.items()
            for name, place in places
        }
        super().__init__(commands={**late, **commands}, **given)


app = typer.Typer(
    name="afresh",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Keep a local copy of remote data as fresh as a budget allows, and see what budget is worth paying.",
)
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
