"""A pytest plugin: only modules with examples in their docstrings are searched for examples.

pytest looks into every docstring of every module, and every process of a run does: a second each, of which
three quarters go to modules that have none. A module without ``>>>`` cannot have an example.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leave out the collector of examples where the file has none."""
    found = yield
    if any(map(_finds_examples, found)) and ">>>" not in file_path.read_text():
        return [each for each in found if not _finds_examples(each)]
    return found


def _finds_examples(collector: pytest.Collector) -> bool:
    return type(collector).__name__ == "DoctestModule"  # pytest has no public name for it
