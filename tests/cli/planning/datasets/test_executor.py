"""Threads that run steps over parts, in order and few ahead."""

from __future__ import annotations

import pytest

from afresh.cli.planning.datasets.executor import ThreadsExecutor, in_order
from afresh.values.errors import InputError


def test_only_a_few_jobs_begin_ahead() -> None:
    begun: list[int] = []

    def start(job: int) -> int:
        begun.append(job)
        return job

    results = in_order(start, lambda job: 10 * job, range(100), 4)
    assert next(results) == 0
    assert len(begun) == 5
    assert [*results] == [10 * job for job in range(1, 100)]


def test_errors_of_jobs_are_raised_and_other_jobs_do_not_begin() -> None:
    begun: list[int] = []

    def fail(job: int) -> int:
        begun.append(job)
        raise InputError("is wrong", path=f"{job}.csv")

    with pytest.raises(InputError, match=r"0\.csv: is wrong"), ThreadsExecutor(1) as executor:
        list(executor.run(fail, range(100)))
    assert len(begun) < 10
