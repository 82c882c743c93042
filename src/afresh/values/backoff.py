"""Exponential backoff: how long to wait after a number of failures in a row.

>>> backoff = Backoff(first_s=0.1, longest_s=5.0)
>>> [backoff.wait_s(failures) for failures in (1, 2, 3, 7, 1_000_000)]
[0.1, 0.2, 0.4, 5.0, 5.0]

``jitter`` is an argument, since chance is passed in everywhere. It multiplies the wait before it is bounded,
so it also says that one kind of failure waits longer than another:

>>> backoff.wait_s(2, jitter=1.25), backoff.wait_s(6, jitter=4.0)
(0.25, 5.0)

What a server asks for (``Retry-After``) is compared with it by the caller: ``max(backoff.wait_s(n),
asked_s)``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """The first wait, and every next one ``factor`` times as long, at most ``longest_s``.

    After ``most_steps`` multiplications the wait no longer grows, wherever the limit is:

    >>> Backoff(60.0, 86400.0, most_steps=10).wait_s(100)
    61440.0
    """

    first_s: float
    longest_s: float
    factor: float = 2.0
    most_steps: int = 30

    def wait_s(self, failures: int, *, jitter: float = 1.0) -> float:
        """Return how long to wait after ``failures`` in a row, counted from 1; 0 failures wait as 1 does."""
        steps = min(max(failures - 1, 0), self.most_steps)
        return min(self.first_s * self.factor**steps * jitter, self.longest_s)
