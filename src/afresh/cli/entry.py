"""Where the program begins: it takes the signals, and only then imports the command line, which is large."""

from __future__ import annotations

from afresh.cli.interruption import INTERRUPTION


def main() -> None:
    """Run the command line: 0 done, 1 it could not be done, 2 wrong usage, 128 + n ended by the signal n."""
    INTERRUPTION.program(_work)


def _work() -> None:
    from afresh.cli.app import perform

    perform()
