"""What a benchmark returns: one row for each figure, with the limit that it must keep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A figure; ``ratio`` is to the yardstick of the benchmark; ``at_most`` and ``at_least`` are limits.

    >>> Row("plan", 0.05, "s", ratio=14.0, at_most=30.0).ok, Row("plan", 0.05, "s").ok
    (True, True)
    """

    name: str
    measured: float
    unit: str
    ratio: float | None = None
    at_most: float | None = None
    at_least: float | None = None

    @property
    def judged(self) -> float:
        """The value that the limits apply to: the ratio, or the figure itself where there is no yardstick."""
        return self.measured if self.ratio is None else self.ratio

    @property
    def ok(self) -> bool:
        """Whether the limits are kept; a figure without limits is always fine."""
        high = self.at_most is None or self.judged <= self.at_most
        return high and (self.at_least is None or self.judged >= self.at_least)

    @property
    def wanted(self) -> str:
        """The limit as text.

        >>> Row("plan", 0.05, "s", ratio=14.0, at_most=30.0).wanted
        '≤ 30'
        """
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"
