"""Exponential back-off: how long to wait after a number of consecutive failures.

>>> backoff = Backoff(first_s=0.1, longest_s=5.0)
>>> [backoff.wait_s(failures) for failures in (1, 2, 3, 7, 1_000_000)]
[0.1, 0.2, 0.4, 5.0, 5.0]

The caller draws ``jitter``, because this module is pure. ``jitter`` multiplies the wait before the limit is
applied, so a caller can also use it to wait longer after one kind of failure than after another:

>>> backoff.wait_s(2, jitter=1.25), backoff.wait_s(6, jitter=4.0)
(0.25, 5.0)

If a server asks for a delay (``Retry-After``), the caller waits for the longer of the two.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """The first wait is ``first_s``; each further wait is ``factor`` times as long, up to ``longest_s``.

    The wait stops growing after ``most_steps`` multiplications, even if it is below ``longest_s``:

    >>> Backoff(60.0, 86400.0, most_steps=10).wait_s(100)
    61440.0
    """

    first_s: float
    longest_s: float
    factor: float = 2.0
    most_steps: int = 30

    def wait_s(self, failures: int, *, jitter: float = 1.0) -> float:
        """Return the seconds to wait after ``failures`` consecutive failures; 0 counts as 1."""
        steps = min(max(failures - 1, 0), self.most_steps)
        return min(self.first_s * self.factor**steps * jitter, self.longest_s)
