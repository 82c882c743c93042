"""Parametrised tests with more cases in the slow suite than in every run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def with_slow_cases(cases: Sequence[Any], *, kept: int) -> list[Any]:
    """Return all ``cases`` for ``parametrize``; those after the first ``kept`` run in the slow suite alone.

    >>> first, second = with_slow_cases(["a", "b"], kept=1)
    >>> first, second.values, second.marks[0].name
    ('a', ('b',), 'slow')
    """
    later = (case if isinstance(case, tuple) else (case,) for case in cases[kept:])
    return [*cases[:kept], *(pytest.param(*case, marks=pytest.mark.slow) for case in later)]
