"""A mirror whose engine seems to run, while its time moves only when a test moves it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from tests.sources.polling import SetClock
from tests.web.serving import Client, dashboard

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.project_interface import WatchedProject
from afresh.engine.reporting.pulse import FIELDS, Pulse, add_point
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import BACKOFFS, PULSE
from afresh.values.outcome import Spent
from afresh.values.stored import ObservationColumns
from afresh.web.snapshot_cache import SnapshotCache

_SETTINGS = """
[budget]
requests = "40/s"
price_per_request = 0.001
[plan]
audit_share = 0.2
[[source]]
name = "web"
delay = 0
min_interval = 0
"""
PAGES, FAST = 61, 60  # items, and the one that always changes
_RAN_S, _POINT_S = 600.0, 10.0


@dataclass(frozen=True)
class Mirror:
    """A dashboard, its engine, and the clock by which both go."""

    web: Client
    engine: Engine
    clock: SetClock
    snapshots: SnapshotCache

    @contextmanager
    def _unread(self) -> Iterator[None]:
        """While time moves and something happens no page reads it; what was read before is not shown again.

        A page that read while time moves would take the reading for a long one, and keep what it read."""
        with self.snapshots.lock:
            yield
            self.snapshots.expire()

    def url(self, path: str) -> str:
        """The address of a page."""
        return self.web.address.rstrip("/") + path

    def key(self, number: int) -> str:
        """An item."""
        return f"http://site.example/p/{number}"

    def item(self, number: int) -> str:
        """The path of an item's page."""
        return f"/item?{urlencode({'key': self.key(number)})}"

    def path_of(self, page: str) -> str:
        """The path of a page; those of one item show the one that has copies."""
        return self.item(3) if page == "/item" else f"/diff?{self._query(3)}" if page == "/diff" else page

    def _query(self, number: int) -> str:
        return urlencode({"key": self.key(number), "source": "web"})

    def change(self, number: int, content: bytes) -> None:
        """Let a poll find another content of an item."""
        with self._unread():
            self.clock.time_s += 1.0
            now_s = self.clock.now_s()
            self.engine.observe([Reported(self.key(number), now_s, content=content, media_type="text/plain")])

    def beat(self, after_s: float = 0.0) -> None:
        """Let time pass; then the engine gives a sign of life and another point of its course."""
        with self._unread():
            self._beat(after_s)

    def _beat(self, after_s: float) -> None:
        self.clock.time_s += after_s
        now_s, store = self.clock.now_s(), self.engine.store
        polls = int(now_s - 1e9 + _RAN_S) * 40
        pulse = Pulse(now_s, 1e9 - _RAN_S, polls=polls, changes=polls // 9, budget_per_s=40.0)
        course = dict.fromkeys(FIELDS, 0.0) | {"time_s": now_s, "freshness": 0.8, "low": 0.7, "high": 0.9}
        course |= {"age_s": 5.0, "polls": polls, "changes": polls // 9, "requests": polls}
        point = np.array([[course[name] for name in FIELDS]])
        store.state.set(add_point(store, point) | {PULSE: pulse.pack()})

    def rest(self, why: str = "") -> None:
        """Say that a host is left alone for ten minutes, or (without a word) that none is."""
        rests = [["site.example", self.clock.now_s() + 600.0, 3, why]] if why else []
        self.engine.store.state.set({BACKOFFS + "web": json.dumps(rests).encode()})


def _fill(mirror: Mirror) -> None:
    """Polls of the last ten minutes: some pages never change, some do now and then, one always."""
    engine, rng = mirror.engine, np.random.default_rng(1)
    engine.add([mirror.key(number) for number in range(PAGES)])
    ages_s = np.linspace(_RAN_S, 2.0, 20)
    engine.observe(
        Reported(
            mirror.key(number), 1e9 - age_s, changed=bool(rng.random() < (number % 7) / 10 or number == FAST)
        )
        for age_s in ages_s.tolist()
        for number in range(PAGES)
    )
    for version in (b"first\nline", b"second\nline"):
        mirror.change(3, version)
    ids = np.array(sorted(engine.store.items.ids([mirror.key(number) for number in range(40)]).values()))
    nothing = np.full(ids.size, np.nan)
    engine.store.observations.add(
        ObservationColumns(
            ids,
            1e9 - np.arange(ids.size, dtype=np.float64),
            np.full(ids.size, 30.0),
            ids % 5 == 0,
            nothing,
            nothing,
            np.ones(ids.size, dtype=bool),
        )
    )
    for minute in range(10):
        engine.store.ledger.add("web", 1e9 - 60.0 * minute, Spent(requests=2000, bytes=10**6))
    for _ in range(5):
        mirror.beat(_POINT_S)


@contextmanager
def open_mirror(folder: Path) -> Iterator[Mirror]:
    """A mirror with something on every page."""
    clock, made = SetClock(), list[SnapshotCache]()

    def make_cache(project: WatchedProject) -> SnapshotCache:
        made.append(SnapshotCache(project))
        return made[-1]

    with (
        pytest.MonkeyPatch.context() as patch,
        make_engine(parse_settings(_SETTINGS), folder, clock=clock, seed=1) as engine,
    ):
        patch.setattr("afresh.web.dashboard_data.SnapshotCache", make_cache)
        with dashboard(engine) as web:
            (snapshots,) = made
            mirror = Mirror(web, engine, clock, snapshots)
            _fill(mirror)
            yield mirror
