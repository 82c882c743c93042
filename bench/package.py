"""The size of the wheel and of what the core needs, and how long a small command takes to start."""

from __future__ import annotations

import re
import sys
import tempfile
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from bench.process import run
from bench.rows import Row
from bench.timing import seconds

_BUILD = ("-m", "build", "--wheel", "--no-isolation", "--outdir")
_SHOWN = 8
_STARTS = {
    "python -c pass": ("-c", "pass"),
    "import afresh": ("-c", "import afresh"),
    "afresh --version": ("-m", "afresh", "--version"),
    "afresh --help": ("-m", "afresh", "--help"),
    "afresh status": ("-m", "afresh", "-C", "PROJECT", "status"),
    "afresh plan": ("-m", "afresh", "plan", "-", "--budget", "5/d"),
}


def rows(*, quick: bool) -> list[Row]:
    """Measure start times, as ratios to the start of Python itself."""
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, *_BUILD, folder])
        (wheel,) = Path(folder).glob("*.whl")
        found = [Row("size of the wheel", wheel.stat().st_size / 1e3, "kB", at_most=2000.0)]
        core, full = installed_bytes(()), installed_bytes(("web", "plots"))
        found.append(Row("size of the core and what it needs", core / 1e6, "MB", ratio=core / full))
        found.append(Row("the same with extras web and plots", full / 1e6, "MB"))
        found += [Row(f"of the core: {name}", size / 1e6, "MB") for name, size in largest_packages()]
        project = Path(folder) / "project"
        run([sys.executable, "-m", "afresh", "init", str(project)])
        items = Path(folder) / "items.csv"
        items.write_text("item,rate\na,1\nb,2\n")
        places = {"-": str(items), "PROJECT": str(project)}
        commands = {
            name: [sys.executable, *(places.get(word, word) for word in words)]
            for name, words in _STARTS.items()
        }
        took = seconds(*(partial(run, command) for command in commands.values()), repeats=1 if quick else 9)
    found += [
        Row(f"cold start, {name}", 1e3 * each, "ms", ratio=each / took[0])
        for name, each in zip(commands, took, strict=True)
    ]
    return found


def installed_bytes(extras: tuple[str, ...]) -> int:
    """Return the size of the installed files of all packages that afresh needs with these extras."""
    return sum(_size(name) for name in _packages(extras))


def largest_packages() -> list[tuple[str, int]]:
    """Return a tuple (name, bytes) for each of the largest packages of the core."""
    sizes = [(name, _size(name)) for name in _packages(())]
    return sorted(sizes, key=lambda entry: -entry[1])[:_SHOWN]


def _packages(extras: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    wanted = [("afresh", extras)]
    while wanted:
        name, more = wanted.pop()
        if name in found:
            continue
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:  # on this machine it is not needed
            continue
        found.add(name)
        for line in needs:
            extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
            if extra is None or extra[1] in more:
                package = re.match(r"[\w.-]+", line)
                wanted.append((re.sub(r"[-_.]+", "-", package[0]).lower() if package else "", ()))
    return found - {"afresh"}


def _size(name: str) -> int:
    paths = (Path(str(file.locate())) for file in distribution(name).files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())
