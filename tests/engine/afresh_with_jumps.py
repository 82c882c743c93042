"""``afresh`` on a machine whose clock is set while it runs: by the seconds that the file ``clock`` holds.

Run as a program by ``QuickAfresh``, in the folder of a project. The clock that is never set goes on as usual.
"""

from __future__ import annotations

import os
import time
from unittest.mock import patch

from afresh.cli.entry import main
from afresh.values.clock import SystemClock

CLOCK_FILE = "clock"


def run() -> None:
    handle = os.open(CLOCK_FILE, os.O_RDONLY)

    def now_s(_clock: SystemClock) -> float:
        return time.time() + float(os.pread(handle, 64, 0) or b"0")

    # The one file that reads the clock has no switch for tests, so that its method is replaced here.
    with patch.object(SystemClock, "now_s", now_s):
        main()


if __name__ == "__main__":
    run()
