"""Python processes that tests start: whatever happens to the test run, they end with it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

# The pipe on standard input closes when the process that started this one is gone, however it ended.
_ENDS_WITH_PARENT = """\
import os, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(70)), daemon=True).start()
"""


def start_child(code: str, *arguments: str, **given: Any) -> subprocess.Popen[bytes]:
    """Another Python that runs ``code``; to be ended by ``end_child``."""
    command = [sys.executable, "-c", _ENDS_WITH_PARENT + code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, **given)


def end_child(process: subprocess.Popen[bytes]) -> None:
    """Kill it unless it has ended, and let go of it."""
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
