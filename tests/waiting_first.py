"""The order of tests: whoever runs a part of them begins with the modules that wait.

xdist gives each worker a part of the list, and a worker that has done its part takes tests from the end of
another one's. Were a test that waits for processes or a browser the last one, all others would wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")


def waiting_first(
    tests: Sequence[T], workers: int, waits: Callable[[T], bool], module: Callable[[T], object]
) -> list[T]:
    """Return the tests in another order: each worker's part begins with modules that wait, whole ones.

    >>> waiting_first("abBcCdA", 2, str.isupper, str.lower)
    ['B', 'A', 'a', 'C', 'b', 'c', 'd']
    """
    by_name: dict[object, list[T]] = {}
    for test in filter(waits, tests):
        by_name.setdefault(module(test), []).append(test)
    modules = list(by_name.values())
    others = [test for test in tests if not waits(test)]
    ordered: list[T] = []
    for worker in range(workers):
        part = [test for found in modules[worker::workers] for test in found]
        size = (len(tests) - len(ordered)) // (workers - worker)  # as xdist divides the list
        more = max(size - len(part), 0) if worker < workers - 1 else len(others)
        ordered += part + others[:more]
        del others[:more]
    return ordered


def kept_together(item: pytest.Item) -> object:
    """What is the same for tests that run one after the other: their module, or a name that several share."""
    return next((mark.kwargs.get("together") for mark in item.iter_markers("waits")), None) or item.path
