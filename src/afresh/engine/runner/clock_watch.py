"""The machine's clock may be set back: no poll stays in the future for it."""

from __future__ import annotations

import logging

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.values.clock import Clock

_STEP_S = 1.0


class ClockWatch:
    """Notices that the machine's clock was set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_s = clock.now_s() - clock.elapsed_s()

    def check(self, item_rows: ItemRows) -> float:
        """By how many seconds the clock went back since the last check; no poll stays in the future."""
        now_s = self._clock.now_s()
        offset_s = now_s - self._clock.elapsed_s()
        back_s, self._offset_s = self._offset_s - offset_s, offset_s
        # At every check: a poll that was under way when the clock was set back ends with the time of before.
        item_rows.polled_s[item_rows.polled_s > now_s + _STEP_S] = now_s
        if back_s < _STEP_S:
            return 0.0
        held = np.isfinite(item_rows.not_before_s)
        item_rows.not_before_s[held] -= back_s
        log_event(logging.WARNING, "the clock was set back", seconds=back_s)
        return back_s
