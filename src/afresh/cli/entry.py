"""Starts the program. It sets the signal handlers before it imports the command line, which takes long."""

from __future__ import annotations

from afresh.cli.interruption import INTERRUPTION


def main() -> None:
    """Run the command line. Its exit status is 0 for success, 1 for failure, 2 for wrong usage, and 128 + n
    if signal n ended it."""
    INTERRUPTION.program(_work)


def _work() -> None:
    from afresh.cli.app import perform

    perform()
