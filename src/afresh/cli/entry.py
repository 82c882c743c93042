"""Starts the program: sets the signal handlers first, because importing the command line takes long."""

from __future__ import annotations

from afresh.cli.interruption import INTERRUPTION


def main() -> None:
    """Run the command line. Exit status: 0 success, 1 failure, 2 wrong usage, 128 + n ended by signal n."""
    INTERRUPTION.program(_work)


def _work() -> None:
    from afresh.cli.app import perform

    perform()
