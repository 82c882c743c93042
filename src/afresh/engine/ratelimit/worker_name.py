"""The name of a worker, which tells other workers on its machine when its process has ended.

A name is ``machine:process:kernel:moment``. Where the kernel (this boot, this container) is our own, a
process number that nobody has means that the worker died: nobody need wait until its claims run out.
"""

from __future__ import annotations

import os
import socket
from hashlib import sha256
from pathlib import Path

from afresh.values.clock import Clock
from afresh.values.stored import Worker

_BOOT, _PROCESSES = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
_UNKNOWN = "?"


def this_worker(clock: Clock, now_s: float) -> Worker:
    host = socket.gethostname()
    moment = int(clock.elapsed_s() * 1e6) % 16**6
    return Worker(f"{host}:{os.getpid()}:{_kernel()}:{moment:06x}", host, now_s, now_s)


def is_dead(name: str) -> bool:
    """Return whether the worker of this name has certainly ended; False where this cannot be known here.

    >>> from afresh.values.clock import SystemClock
    >>> is_dead(this_worker(SystemClock(), 0.0).name), is_dead("elsewhere:1:00000000:00")
    (False, False)
    """
    parts = name.rsplit(":", 3)
    if len(parts) != 4 or not parts[1].isdecimal() or parts[2] == _UNKNOWN or parts[2] != _kernel():
        return False
    try:
        os.kill(int(parts[1]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # there is such a process, of somebody else
    return False


def _kernel() -> str:
    """Return a short name for this boot of the machine and its process numbers as seen from here."""
    try:
        seen = _BOOT.read_text().strip() + str(_PROCESSES.readlink())
    except OSError:
        return _UNKNOWN
    return sha256(seen.encode()).hexdigest()[:8]
