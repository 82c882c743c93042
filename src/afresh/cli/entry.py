"""Starts the program. It sets the signal handlers before it imports the command line, which takes long."""

from __future__ import annotations

from afresh.cli.interruption import INTERRUPTION


def main() -> None:
    """Run the command line. It exits with 0 (success), 1 (failure), 2 (wrong usage) or 128 + n (signal n)."""
    INTERRUPTION.program(_work)


def _work() -> None:
    from afresh.cli.app import perform

    perform()
