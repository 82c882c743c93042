"""A world whose time passes as fast as it is worked through, and an engine's mind that polls it.

Polls go as the engine's: the rows worth most first, learned from and committed together, and what was learned
of all items kept once a minute and at every refit. What is true of the copies is known exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np

from afresh.engine.app import make_engine
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.restore import pack_learned, start_scheduler
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import LiveSettings
from afresh.engine.state_names import LEARNED, SHADOW_PRICE
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.values.arrays import Float64s, Ints
from afresh.values.lease import Lease
from afresh.values.outcome import Observation, Outcome
from afresh.web.dashboard_data import DashboardData

_SETTINGS = '[budget]\nrequests = "{}/s"\n[[source]]\nname = "web"\ndelay = "0s"\nmin_interval = 0\n'
_STEP_S, _KEEP_S, _LASTS_S = 0.4, 60.0, 10_000.0


class QuickWorld:
    """Pages that change at ``rates``, polled at a budget; ``web`` is what the dashboard shows of it."""

    def __init__(self, rates: Float64s, budget_per_s: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._now_s, self._kept_s = 1e9, 1e9
        self._changes = [
            (1e9 + np.sort(rng.uniform(0.0, _LASTS_S, rng.poisson(rate * _LASTS_S)))).tolist()
            for rate in rates
        ]
        self._polled_s = np.full(rates.size, -math.inf)
        self._engine = make_engine(
            parse_settings(_SETTINGS.format(budget_per_s)), store=MemoryStore(), clock=self
        )
        self._engine.add([f"https://a.example/{page}" for page in range(rates.size)])
        self.store, self._budget_per_s = self._engine.store, budget_per_s
        current = self._engine.current()
        self.scheduler = start_scheduler(self.store, current, self.store.plan.columns(), self)
        self._recorder = PollRecorder(LiveSettings(current), self.scheduler, PollCosts())
        self._refits = self.scheduler.refits
        self.web = DashboardData(self._engine, None)

    def now_s(self) -> float:
        """The time of day."""
        return self._now_s

    def elapsed_s(self) -> float:
        """The time that passed."""
        return self._now_s

    def ask_budget(self, requests_per_s: float) -> None:
        """As the dashboard asks for it, and as the engine follows."""
        self._engine.ask_budget(requests_per_s)
        self._budget_per_s = requests_per_s
        self.scheduler.policy.ranking.set_budget(requests_per_s)
        self.web.forget()

    def live(self, lasts_s: float) -> float:
        """Poll for so long; the mean share of copies that were right."""
        at_once, right = max(round(self._budget_per_s * _STEP_S), 1), []
        end_s = self._now_s + lasts_s
        while self._now_s < end_s:
            self._now_s += at_once / self._budget_per_s
            self._poll(at_once)
            right.append(self.right())
        self._keep()
        self.web.forget()
        return float(np.mean(right))

    def _poll(self, count: int) -> None:
        policy = self.scheduler.policy
        worth = policy.poll_values(self._now_s)
        rows = np.argsort(-worth, kind="stable")[:count]
        for row in rows[worth[rows] > -np.inf].tolist():
            policy.record_pick(float(worth[row]) if worth[row] < 1e300 else 0.0)
        ids = policy.item_rows.ids[rows].tolist()
        leases = self.store.leases.take(ids, self._now_s, 60.0)
        self.store.commit(self._recorder.complete([self._decided(lease) for lease in leases]))
        if self.scheduler.refits != self._refits or self._now_s >= self._kept_s + _KEEP_S:
            self._keep()

    def _decided(self, lease: Lease) -> Outcome:
        row, now_s = int(self.scheduler.item_rows.rows([lease.item_id])[0]), self._now_s
        before_s, self._polled_s[row] = float(self._polled_s[row]), now_s
        elapsed_s = now_s - before_s if math.isfinite(before_s) else 0.0
        changed = elapsed_s > 0 and bool(self._upto(row, now_s) > self._upto(row, before_s))
        seen = Observation(lease.item_id, now_s, elapsed_s, changed=changed)
        return Outcome(lease, now_s, due_s=-math.inf, observation=seen)

    def _upto(self, row: int, time_s: float) -> int:
        return bisect_right(self._changes[row], time_s)

    def right(self) -> float:
        """The share of copies that are right now."""
        polled: Ints = np.flatnonzero(np.isfinite(self._polled_s))
        right = sum(
            self._upto(row, self._now_s) == self._upto(row, self._polled_s[row]) for row in polled.tolist()
        )
        return right / self._polled_s.size

    def _keep(self) -> None:
        self._refits, self._kept_s = self.scheduler.refits, self._now_s
        learned = pack_learned(self.scheduler.learned_state() or {})
        self.store.state.set(
            {LEARNED: learned, SHADOW_PRICE: repr(self.scheduler.policy.shadow_price).encode()}
        )
