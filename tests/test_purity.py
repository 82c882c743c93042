"""Time and chance are arguments, and the pure layers take and return values: read from the code of each file.

In all of ``src`` one file reads the clock, and nobody draws from chance that was not passed in: no
``random``, no functions of ``numpy.random`` itself, no generator without a seed. In the pure layers nobody
calls ``hash`` or ``id``, does I/O, sleeps, logs, reads the environment, rebinds a global or asks the system
for more than how many threads pay. A file is judged by the names it uses, whatever it imported them as. What
is passed in, or found by ``getattr``, is not seen; nor is a table that a cached function fills.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "afresh"
PURE = ("model", "allocation", "rates", "money", "policy", "probes")
CLOCK_MODULES = {"time"}
CLOCKS = {
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}
SEEDED = {"numpy.random.default_rng", "numpy.random.Generator"}
IO_NAMES = {"builtins.open", "builtins.print", "builtins.input"}
# ``hash`` of a text is another number in every process, so what rests on it cannot be repeated.
OTHER_IN_EVERY_PROCESS = {"builtins.hash", "builtins.id"}
IO_MODULES = {
    "asyncio", "io", "logging", "pathlib", "secrets", "shutil", "socket", "subprocess", "sys", "tempfile",
    "uuid",
}  # fmt: skip
ASKED_OF_THE_SYSTEM = {"os.sched_getaffinity", "os.cpu_count"}  # how many threads are worth starting


def imported(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for: ``np`` for ``numpy``, ``now`` for ``time.monotonic``."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def full_name(node: ast.AST, names: dict[str, str]) -> str:
    """``numpy.random.normal`` for ``np.random.normal``; what was not imported is as if built in."""
    if isinstance(node, ast.Name):
        return names.get(node.id, f"builtins.{node.id}")
    if isinstance(node, ast.Attribute):
        owner = full_name(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


@cache  # three checks ask it of the same files
def used(tree: ast.AST) -> set[str]:
    """Every name that a file uses or imports, in full."""
    names = imported(tree)
    return {*names.values(), *filter(None, (full_name(node, names) for node in ast.walk(tree)))}


def clocks(tree: ast.AST) -> set[str]:
    """What reads the clock, or sleeps by it."""
    return {name for name in used(tree) if name in CLOCKS or name.split(".")[0] in CLOCK_MODULES}


def hidden_chance(tree: ast.AST) -> set[str]:
    """What draws from chance that nobody passed in."""
    found = {
        name
        for name in used(tree)
        if name.startswith("random.") or (name.startswith("numpy.random.") and name not in SEEDED)
    }
    names = imported(tree)
    # ``default_rng(seed)`` in a command is the seed of the whole run; without a seed it is hidden chance.
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            found |= {full_name(node.func, names)} & {"numpy.random.default_rng"}
    return found


def impurities(tree: ast.AST) -> Iterator[str]:
    """What a pure layer must not do."""
    yield from clocks(tree)
    yield from hidden_chance(tree)
    for name in used(tree):
        top = name.split(".")[0]
        if top in IO_MODULES or name in IO_NAMES | OTHER_IN_EVERY_PROCESS:
            yield name
        if top == "os" and name != "os" and name not in ASKED_OF_THE_SYSTEM:
            yield name
    yield from (
        f"global {name}" for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names
    )


@cache
def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text())


def mentioning(pattern: str) -> list[Path]:
    """The files with text that may break a rule: to parse them all takes seconds."""
    return [path for path in SOURCE.rglob("*.py") if re.search(pattern, path.read_text())]


def test_only_the_clock_reads_the_clock() -> None:
    imports = mentioning(r"\b(import|from)\b.*\b(time|datetime)\b")
    readers = {path.relative_to(SOURCE).as_posix() for path in imports if clocks(parsed(path))}
    assert readers == {"values/clock.py"}


def test_chance_is_always_passed_in() -> None:
    for path in mentioning(r"\brandom\b"):
        assert not hidden_chance(parsed(path)), path


@pytest.mark.parametrize("layer", PURE)
def test_pure_layers_are_pure(layer: str) -> None:
    files = sorted((SOURCE / layer).rglob("*.py"))
    assert files
    for path in files:
        assert not set(impurities(parsed(path))), path


@pytest.mark.parametrize(
    "line",
    [
        "from time import monotonic",
        "import time as t; t.sleep(1)",
        "import time; time.time_ns()",
        "import datetime as dt; dt.datetime.now()",
        "from datetime import datetime; datetime.now()",
        "from datetime import date; today = date.today",
        "import random; random.random()",
        "from random import choice",
        "import numpy as np; np.random.default_rng()",
        "from numpy.random import default_rng; default_rng()",
        "from numpy.random import standard_normal",
        "import numpy as np; np.random.seed(1)",
        "import os; os.environ['HOME']",
        "from os import getenv",
        "import os.path as there",
        "from pathlib import Path",
        "import logging as log",
        "print(1)",
        "write = open",
        "hash('docs/a')",
        "def f():\n    global counter",
    ],
)
def test_the_check_sees(line: str) -> None:
    assert set(impurities(ast.parse(line))), line


@pytest.mark.parametrize(
    "line",
    [
        "import numpy as np; np.random.default_rng(7)",
        "import numpy as np; rng: np.random.Generator",
        "import os; os.cpu_count()",
        "from datetime import UTC, datetime; datetime.fromtimestamp(0, UTC)",
        "time = 1.0; time + 1",
        "from afresh.money.time_range import time_range",
        "self.time.mean()",
    ],
)
def test_the_check_lets_pass(line: str) -> None:
    assert not set(impurities(ast.parse(line))), line
