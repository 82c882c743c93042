"""One line of request starts for all workers: windows that never overlap, and debts that are paid first.

A window is for one worker. Within it that worker keeps its starts ``spacing`` apart; the next window begins
``spacing`` after its end. So any two starts of all workers are ``spacing`` apart: at most rate·T + 1 in any
window T, whoever is late.

>>> first, pace = Pace().reserve(3, 1.0, 0.25, now_s=100.0)
>>> first, pace.reserve(1, 1.0, 0.0, now_s=100.1)[0]
(Window(first_s=100.0, until_s=102.25), Window(first_s=103.25, until_s=103.25))
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from afresh.values.errors import InputError
from afresh.values.stored import Window

_FARTHEST_S = 86400.0  # what lies further ahead was written by a clock that has been set back since


@dataclass(frozen=True, slots=True)
class Pace:
    """``last_s``: no request starts later than this; ``debt_s``: when all debts are paid."""

    last_s: float = -math.inf
    debt_s: float = -math.inf

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> tuple[Window, Pace]:
        """The next window, and the pace after it."""
        _check(count, spacing_s, slack_s)
        last_s = min(self.last_s, now_s + max(_FARTHEST_S, spacing_s))
        first_s = max(now_s, last_s + spacing_s, min(self.debt_s, now_s + _FARTHEST_S))
        # The sum rounds, and the difference of the rounded times must not fall short.
        if first_s - last_s < spacing_s:
            first_s = math.nextafter(first_s, math.inf)
        window = Window(first_s, first_s + (count - 1) * spacing_s + slack_s)
        return window, replace(self, last_s=window.until_s)

    def owe(self, owed_s: float, now_s: float) -> Pace:
        """Debts are paid one after the other, from now on."""
        if not 0 <= owed_s < math.inf:
            raise InputError(f"a debt of {owed_s} s: must be 0 or more, and finite")
        return replace(self, debt_s=max(self.debt_s, now_s) + owed_s) if owed_s else self


def _check(count: int, spacing_s: float, slack_s: float) -> None:
    if count < 1:
        raise InputError(f"a window for {count} requests: must be 1 or more")
    for name, value in (("spacing_s", spacing_s), ("slack_s", slack_s)):
        if not 0 <= value < math.inf:
            raise InputError(f"{name} is {value}: must be 0 or more, and finite")
