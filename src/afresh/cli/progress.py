"""A progress bar on standard error that appears only when work takes longer than a second."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from afresh.values.clock import Clock, SystemClock

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_S = 1.0


class ProgressBar:
    """Shows how much work is done, after the first second, if standard error is a terminal.

    >>> with ProgressBar("reading", total=2) as progress:
    ...     progress.reach(1)
    ...     progress.reach(2)
    >>> progress.done
    2.0
    """

    def __init__(
        self, label: str, total: float | None = None, *, clock: Clock | None = None, show: bool | None = None
    ) -> None:
        """``total`` is the amount of work, in any unit. If ``show`` is None, the bar needs a terminal."""
        self.label, self.total, self.done = label, total, 0.0
        self._clock = clock or SystemClock()
        self._show = sys.stderr.isatty() if show is None else show
        self._started_s = self._clock.elapsed_s()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        """Return the bar, which is not drawn yet."""
        return self

    def reach(self, done: float) -> None:
        """Record that the amount ``done`` of ``total`` is done, and update the bar."""
        self.done = float(done)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done)
        elif self._show and self._clock.elapsed_s() - self._started_s >= PATIENCE_S:
            self._bar = self._draw()

    def _draw(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = bar.add_task(self.label, total=self.total)
        bar.update(task, completed=self.done)
        bar.start()
        return bar

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
