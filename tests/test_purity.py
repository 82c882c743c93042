"""Time and chance are arguments: one file reads the clock, none draws from hidden randomness or sleeps."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "afresh"
PURE = ("model", "allocation", "rates", "money", "policy", "probes")
CLOCKS = {
    ("time", "time"),
    ("time", "monotonic"),
    ("time", "perf_counter"),
    ("datetime", "now"),
    ("date", "today"),
}
INPUT_OUTPUT = {"open", "print", "input"}
IO_MODULES = {"sys", "io", "pathlib", "logging", "subprocess", "socket", "asyncio"}
ASKED_OF_THE_SYSTEM = {"sched_getaffinity", "cpu_count"}  # how many threads are worth starting


def files(*layers: str) -> list[Path]:
    return sorted(path for layer in layers for path in (SOURCE / layer).rglob("*.py"))


def calls(path: Path) -> list[tuple[str, str]]:
    """Every call in a file as (owner, name)."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute):
                owner = function.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                found.append((name, function.attr))
            elif isinstance(function, ast.Name):
                found.append(("", function.id))
    return found


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_only_the_clock_reads_the_clock() -> None:
    readers = {
        path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if CLOCKS & set(calls(path))
    }
    assert readers == {"values/clock.py"}


def test_chance_is_always_passed_in() -> None:
    for path in SOURCE.rglob("*.py"):
        assert "random" not in imports(path), path
        # ``default_rng(seed)`` in a command is the seed of the whole run; without a seed it is hidden chance.
        hidden = [
            name
            for owner, name in calls(path)
            if owner == "random" and name not in ("default_rng", "Generator")
        ]
        assert not hidden, f"{path}: {hidden}"


@pytest.mark.parametrize("layer", [layer for layer in PURE if (SOURCE / layer).exists()])
def test_pure_layers_do_no_input_or_output(layer: str) -> None:
    for path in files(layer):
        assert not imports(path) & IO_MODULES, path
        assert not [name for owner, name in calls(path) if owner == "" and name in INPUT_OUTPUT], path
        assert {name for owner, name in calls(path) if owner == "os"} <= ASKED_OF_THE_SYSTEM, path
