"""What runs the steps of a command over the parts of a dataset: threads of this process, or a Ray cluster.

A step is a function of one job, such as "build the histogram of this part". It is at the top level of a
module and takes and returns values that can be pickled, so that any executor can run it anywhere."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from afresh.tables.object_paths import is_address
from afresh.values.errors import UsageError, did_you_mean

Job = TypeVar("Job")
Result = TypeVar("Result")
PLACES = ("local", "duckdb", "ray")


class PartExecutor(Protocol):
    """Runs a function over jobs. Use it in a ``with`` block, which ends what the executor started.

    A job that is lost with its process or machine is run again elsewhere, so that functions must give the
    same result when they run twice. An error that a function raises ends ``run`` and is raised there."""

    @property
    def workers(self) -> int:
        """How many jobs run at the same time."""

    def run(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yield the result of each job, in the order of the jobs, as soon as it is there."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_executor(on: str) -> PartExecutor:
    """Return the executor that ``--on`` names: ``local``, ``duckdb``, ``ray`` or ``ray://HOST``.

    >>> open_executor("rai")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --on 'rai': did you mean 'ray'? One of local, duckdb, ray, ray://HOST[:PORT]
    """
    if on in ("local", "duckdb"):
        if on == "duckdb":
            from afresh.cli.planning.datasets.duckdb_session import import_duckdb

            import_duckdb()  # a missing package is named before the work begins
        return ThreadsExecutor()
    if on == "ray" or on.startswith("ray://"):
        from afresh.cli.planning.datasets.ray_executor import RayExecutor

        return RayExecutor(on.removeprefix("ray://") if on != "ray" else None)
    hint = did_you_mean(on, PLACES)
    raise UsageError(
        f"--on {on!r}{hint if hint != '.' else ':'} One of local, duckdb, ray, ray://HOST[:PORT]"
    )


def path_for(on: str | None, path: str) -> str:
    """Return the path under which the processes of an executor find a file of the user: those of Ray run in
    other folders.

    >>> path_for("local", "items"), path_for("ray", "/srv/items"), path_for("ray", "s3://bucket/items/")
    ('items', '/srv/items', 's3://bucket/items/')
    """
    is_elsewhere = on is not None and (on == "ray" or on.startswith("ray://"))
    return str(Path.cwd() / path) if is_elsewhere and not is_address(path) else path


class ThreadsExecutor:
    """Runs jobs on threads of this process, one per processor. Reading files, NumPy and Numba release the
    interpreter's lock for most of the time."""

    def __init__(self, workers: int | None = None) -> None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._workers = workers or available
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="part")

    @property
    def workers(self) -> int:
        return self._workers

    def run(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yield the results in order; only a few jobs are begun ahead, so that few results wait in memory."""
        return in_order(lambda job: self._pool.submit(function, job), Future.result, jobs, 2 * self._workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget the jobs that have not begun, and wait for those that have."""
        self._pool.shutdown(wait=kind is None or issubclass(kind, Exception), cancel_futures=True)


def in_order(
    start: Callable[[Job], Any], wait: Callable[[Any], Result], jobs: Sequence[Job], ahead: int
) -> Iterator[Result]:
    """Start jobs, at most ``ahead`` before the one whose result is yielded next, and yield their results.

    >>> list(in_order(lambda job: job, lambda started: 10 * started, [1, 2, 3], 2))
    [10, 20, 30]
    """
    started: deque[Any] = deque()
    for job in jobs:
        started.append(start(job))
        if len(started) > ahead:
            yield wait(started.popleft())
    while started:
        yield wait(started.popleft())
