"""Polls new items by SAA, the self-adaptive algorithm of Zhang et al. 2007, until their rates are known.

A source with the setting ``saa_guess`` begins each item with that guess of its rate. ``rates/saa.py`` then
says when the item is polled next, and how the frequency of its polls changes. When SAA has estimated the
rate, the item is polled by its poll value, like all others. The belief learns from these polls too. The state
of SAA is not stored: it follows from the stored observations, of which an item has about eighty at most then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.settings.tables import Settings
from afresh.rates.saa import SelfAdaptive
from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.stored import ObservationColumns


class SaaSampling:
    """Says which rows SAA polls, and when. ``guesses`` has the first guess of the rates, in changes per
    second, by source; other sources are not sampled. ``names`` has the names of sources by number."""

    def __init__(self, item_rows: ItemRows) -> None:
        self._item_rows = item_rows
        self.guesses: Mapping[str, float] = {}
        self.names: Mapping[int, str] = {}
        self._states: dict[int, SelfAdaptive] = {}  # by row; those that are done are removed
        self._due_s = np.empty(0)

    def state(self, row: int) -> SelfAdaptive | None:
        """Return the state of SAA for a row; None if it does not poll the row (any more)."""
        return self._states.get(row) if self._source(row) in self.guesses else None

    def _source(self, row: int) -> str:
        return self.names.get(int(self._item_rows.source[row]), "")

    def follow_settings(self, settings: Settings, names: Mapping[int, str]) -> None:
        """Use the guesses of new settings. Items that were polled before their source had a guess count as
        known, until an engine starts again and reads their observations."""
        tables = [table.settings for table in settings.sources]
        self.guesses = {table.name: table.saa_guess for table in tables if table.saa_guess is not None}
        self.names = names
        for row in [row for row in self._states if self.state(row) is None]:
            self._end(row)

    def due_s(self) -> Float64s:
        """Return for each row when SAA polls it next (Unix seconds); NaN for rows that it does not poll."""
        missing = self._item_rows.size - self._due_s.size
        if missing > 0:
            self._due_s = np.concatenate([self._due_s, np.full(missing, np.nan)])
        return self._due_s

    def observe(self, rows: Ints, times_s: Float64s, elapsed_s: Float64s, changed: Bools) -> None:
        """Learn from polls: their times, the seconds since the previous polls of the same items (0 for the
        first one), and whether they found a change."""
        if not self.guesses:
            return
        columns = (each.tolist() for each in (rows, times_s, elapsed_s, changed))
        for row, time_s, waited_s, found in zip(*columns, strict=True):
            state = self.state(row)
            if state is not None and time_s > state.last_poll:
                self._set(row, state.observe(found, time_s) if waited_s > 0 else None, time_s)
            elif np.isnan(self._item_rows.polled_s[row]) and self._source(row) in self.guesses:
                self._set(row, None, time_s)

    def restore(self, rows: Ints, seen: ObservationColumns) -> None:
        """Continue from the stored observations of ``rows``; ``seen.item_id`` has the id of each."""
        if not self.guesses:
            return
        row_of = {int(self._item_rows.ids[row]): int(row) for row in rows}
        ended: set[int] = set()
        columns = (each.tolist() for each in (seen.item_id, seen.time_s, seen.elapsed_s, seen.changed))
        for item_id, time_s, elapsed_s, changed in zip(*columns, strict=True):
            row = row_of.get(item_id)
            if row is None or row in ended or self._source(row) not in self.guesses:
                continue
            if row not in self._states:
                self._set(row, None, time_s - elapsed_s)
            if elapsed_s > 0 and time_s > self._states[row].last_poll:
                self._set(row, self._states[row].observe(changed, time_s), time_s)
                if row not in self._states:
                    ended.add(row)

    def miss(self, row: int, polled_s: float) -> None:
        """Another engine polled a row. What it found is not known here: the next interval begins then."""
        state = self.state(row)
        if state is not None and polled_s > state.last_poll:
            self._set(row, replace(state, last_poll=polled_s), polled_s)

    def _set(self, row: int, state: SelfAdaptive | None, time_s: float) -> None:
        """Set the state of a row; None begins again with a first poll at ``time_s``."""
        if state is None:
            state = SelfAdaptive.start(self._guess(row), at=time_s, fastest=self._fastest(row))
        due_s = state.next_poll()
        if due_s is None:
            self._end(row)
        else:
            self._states[row] = state
            self.due_s()[row] = due_s

    def _end(self, row: int) -> None:
        self._states.pop(row, None)
        self.due_s()[row] = np.nan

    def _guess(self, row: int) -> float:
        stated = float(self._item_rows.prior_rate_per_s[row])
        return stated if stated > 0 else self.guesses[self._source(row)]

    def _fastest(self, row: int) -> float:
        least_s = float(self._item_rows.min_interval_s[row])
        return 1.0 / least_s if least_s > 0 else math.inf
