"""The size of the wheel, and how long a small command takes to start."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.process import run
from bench.rows import Row
from bench.timing import seconds

_BUILD = ("-m", "build", "--wheel", "--no-isolation", "--outdir")
_STARTS = {
    "python -c pass": ("-c", "pass"),
    "import afresh": ("-c", "import afresh"),
    "afresh --version": ("-m", "afresh", "--version"),
    "afresh --help": ("-m", "afresh", "--help"),
    "afresh plan": ("-m", "afresh", "plan", "-", "--budget", "5/d"),
}


def rows(*, quick: bool) -> list[Row]:
    """Measure start times, as ratios to the start of Python itself."""
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, *_BUILD, folder])
        (wheel,) = Path(folder).glob("*.whl")
        found = [Row("size of the wheel", wheel.stat().st_size / 1e3, "kB", at_most=2000.0)]
        items = Path(folder) / "items.csv"
        items.write_text("item,rate\na,1\nb,2\n")
        commands = {
            name: [sys.executable, *(str(items) if word == "-" else word for word in words)]
            for name, words in _STARTS.items()
        }
        took = seconds(*(partial(run, command) for command in commands.values()), repeats=1 if quick else 9)
    found += [
        Row(f"cold start, {name}", 1e3 * each, "ms", ratio=each / took[0])
        for name, each in zip(commands, took, strict=True)
    ]
    return found
