"""``afresh`` for a child process that must not outlive its parent, however the parent ends.

The parent holds the other end of our standard input open and writes nothing to it. When that end is closed
the parent is gone, or is done with us.
"""

from __future__ import annotations

import os
import threading

from afresh.cli.entry import main


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)  # at once: what is kept survives that, and nobody waits for the rest


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True, name="afresh-parent").start()
    main()
