"""Runs a command in a process of its own and measures its time and its peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Run:
    """The time, the processor time and the peak memory of a process, and its output."""

    seconds: float
    peak_bytes: int
    output: str
    processor_s: float


_ROOT = Path(__file__).parent.parent


def run(command: Sequence[str]) -> Run:
    """Run ``command`` in the root of the project; if it fails, raise an error with its output."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    output = process.stdout.read()
    # Only wait4 gives the peak memory of this child; getrusage gives the largest of all children.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {output.strip()}")
    seconds, processor_s = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    return Run(seconds, usage.ru_maxrss * 1024, output, processor_s)


def run_python(module: str, *arguments: str) -> Run:
    """Run ``python -m module`` with this interpreter."""
    return run([sys.executable, "-m", module, *arguments])
