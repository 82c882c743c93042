"""The program of a parser process: it calls functions that it is sent, each within its limits.

A request and an answer are pickles, each after its length in 8 bytes. A request is a tuple (seconds of
processor time, bytes of memory, function, arguments); the answer is a tuple (kind, result). The kinds are
``done``, ``failed`` (the result describes the exception) and ``memory``. The process ends when nobody sends
requests any more: its input is closed, or nothing came for a while.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

IDLE_S = 60.0
HEAD_BYTES = 8
_SPARE_S = 1.0  # a later signal, which nothing can catch either


def main(reader: int, writer: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that sends the requests decides when to end
    while select.select([reader], [], [], IDLE_S)[0]:
        request = read_message(reader)
        if request is None:
            return
        seconds, memory_bytes, function, arguments = pickle.loads(request)
        del request
        answer = _call(seconds, memory_bytes, function, arguments)
        del arguments
        write_message(writer, answer)
        del answer


def _call(seconds: float, memory_bytes: int, function: Callable[..., Any], arguments: Any) -> bytes:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    # The default action of the signal ends the process, also inside a library that does not return.
    signal.setitimer(signal.ITIMER_PROF, seconds, _SPARE_S)
    limit = _address_space() + memory_bytes
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )
    try:
        return pickle.dumps(("done", function(*arguments)), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        pass  # answered below, when what the exception keeps alive is gone
    except Exception as error:  # noqa: BLE001  (any function may be called)
        return pickle.dumps(("failed", f"{type(error).__name__}: {error}"[:500]))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return pickle.dumps(("memory", None))


def _address_space() -> int:
    """Return the bytes of address space that this process has now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:  # not Linux: what Python and its libraries usually have
        return 512_000_000
    return pages * resource.getpagesize()


def read_message(reader: int) -> bytes | None:
    """Return the next message, or None if there is no more."""
    head = _read_exactly(reader, HEAD_BYTES)
    return None if head is None else _read_exactly(reader, int.from_bytes(head))


def write_message(writer: int, message: bytes) -> None:
    for part in (len(message).to_bytes(HEAD_BYTES), message):
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(writer, rest) :]


def _read_exactly(reader: int, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(reader, min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not look like an answer
    main(0, out)
