"""The name of a worker, from which other workers on the same machine can find that its process has ended.

A name is ``machine:process:kernel:moment``. ``kernel`` identifies the boot of the machine and the container.
If it equals that of this process, but there is no process with the number ``process``, the worker is dead,
and its claims can be taken before they expire.
"""

from __future__ import annotations

import os
import socket
from hashlib import sha256
from pathlib import Path

from afresh.values.clock import Clock
from afresh.values.leftovers import is_alive
from afresh.values.stored import Worker

_BOOT, _PROCESSES = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
_UNKNOWN = "?"


def this_worker(clock: Clock, now_s: float) -> Worker:
    host = socket.gethostname()
    moment = int(clock.elapsed_s() * 1e6) % 16**6
    return Worker(f"{host}:{os.getpid()}:{_kernel()}:{moment:06x}", host, now_s, now_s)


def is_dead(name: str) -> bool:
    """Return whether the worker ``name`` has certainly ended; False if this cannot be known here.

    >>> from afresh.values.clock import SystemClock
    >>> is_dead(this_worker(SystemClock(), 0.0).name), is_dead("elsewhere:1:00000000:00")
    (False, False)
    """
    parts = name.rsplit(":", 3)
    if len(parts) != 4 or not parts[1].isdecimal() or parts[2] == _UNKNOWN or parts[2] != _kernel():
        return False
    return not is_alive(int(parts[1]))


def _kernel() -> str:
    """Return an identifier of this boot of the machine and of the process namespace (the container)."""
    try:
        seen = _BOOT.read_text().strip() + str(_PROCESSES.readlink())
    except OSError:
        return _UNKNOWN
    return sha256(seen.encode()).hexdigest()[:8]
