"""The freshness of some copies over time, drawn with characters: rows are freshness, columns are time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

LOW, HIGH, ROWS = 0.50, 0.66, 17  # a hundredth a row; with its legend it fits a terminal of 24 rows
_MARKS = ("·", "●")
_STYLES = ("yellow", "bold green")


def smoothed(values: Sequence[float], over: int) -> list[float]:
    """The mean of the last ``over`` values at each place.

    >>> smoothed([1.0, 2.0, 3.0, 4.0], 2)
    [1.0, 1.5, 2.5, 3.5]
    """
    return [sum(values[max(0, end - over) : end]) / min(over, end) for end in range(1, len(values) + 1)]


def chart(
    lines: Mapping[str, Sequence[float]], times: Sequence[float], end: float, level: float, width: int
) -> Text:
    """Lines of values at ``times`` up to ``end``, and a ``level`` across, ``width`` characters wide.

    >>> drawn = chart({"a": [0.5, 0.62]}, [0.0, 5.0], 10.0, 0.65, 20)
    >>> drawn.plain.splitlines()[4].rstrip()
    '0.62 ┤       ·'
    """
    from rich.text import Text

    columns = max(width - 7, 10)
    cells = [[(" ", "")] * columns for _ in range(ROWS)]
    cells[_row(level)] = [("╌", "dim")] * columns
    for mark, style, values in zip(_MARKS, _STYLES, lines.values(), strict=False):
        for time, value in zip(times, values, strict=True):
            column = min(int(time / end * columns), columns - 1)
            cells[_row(value)][column] = (mark, style)
    return Text("\n").join(_drawn(row, line) for row, line in enumerate(cells))


def _drawn(row: int, line: Sequence[tuple[str, str]]) -> Text:
    """One row with what it stands for."""
    from rich.text import Text

    at = HIGH - (HIGH - LOW) * row / (ROWS - 1)
    return Text.assemble((f"{at:.2f} ┤ ", "dim"), *line)


def _row(value: float) -> int:
    """The row that shows a value; those beyond the edges lie on them."""
    return min(max(round((HIGH - value) / (HIGH - LOW) * (ROWS - 1)), 0), ROWS - 1)
