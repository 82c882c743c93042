"""Runs ``afresh`` as a child process that ends when its parent process ends, even if the parent is killed.

The child's standard input is a pipe. The parent keeps the writing end open and writes nothing to it. When the
child finds the pipe closed, the parent has ended or wants the child to end.
"""

from __future__ import annotations

import os
import threading

from afresh.cli.entry import main


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)  # without cleaning up: the store survives this, and nobody waits for the output


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True, name="afresh-parent").start()
    main()
