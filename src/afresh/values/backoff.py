"""Exponential back-off: the time to wait after a number of consecutive failures.

>>> backoff = Backoff(first_s=0.1, longest_s=5.0)
>>> [backoff.wait_s(failures) for failures in (1, 2, 3, 7, 1_000_000)]
[0.1, 0.2, 0.4, 5.0, 5.0]

``jitter`` is a factor by which the wait is multiplied before the limit is applied. The caller draws it,
because this module is pure. It can also make the wait longer after one kind of failure than after another:

>>> backoff.wait_s(2, jitter=1.25), backoff.wait_s(6, jitter=4.0)
(0.25, 5.0)

If a server asks for a delay (``Retry-After``), the caller takes the longer of that delay and this wait.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """A rule for waits: the first is ``first_s`` seconds, each next one ``factor`` times as long.
    A wait is at most ``longest_s`` seconds. It also stops growing after ``most_steps`` multiplications:

    >>> Backoff(60.0, 86400.0, most_steps=10).wait_s(100)
    61440.0
    """

    first_s: float
    longest_s: float
    factor: float = 2.0
    most_steps: int = 30

    def wait_s(self, failures: int, *, jitter: float = 1.0) -> float:
        """Return the seconds to wait after ``failures`` consecutive failures; 0 failures count as 1.
        The wait is multiplied by ``jitter`` before it is limited to ``longest_s``."""
        steps = min(max(failures - 1, 0), self.most_steps)
        return min(self.first_s * self.factor**steps * jitter, self.longest_s)
