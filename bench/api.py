"""A web API kept fresh: pages of changed records against look-ups in turn, with as many requests.

A real site over HTTP lists its records by the time of their last change (``since``), a hundred on a page, and
answers look-ups. Records change by Poisson processes whose rates have a gamma distribution. The whole engine
keeps all records fresh by kind ``api``. A rival then looks up one record after the other at the very same
times. Freshness and content lag over the last two thirds are measured by what the site served when.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from aiohttp import web
from tests.servers.api_site import served_api

from afresh.engine.app import make_engine
from afresh.engine.settings.parsing import parse_settings
from afresh.values.arrays import Float64s
from afresh.values.clock import SystemClock
from bench.rows import Row

CLOCK = SystemClock()
BUDGET_PER_S = 5.0
MEAN_RATE_PER_S = 0.02
PAGE_SIZE = 100


class Records:
    """Records with the times of their changes, and what was served of each: tuples (time, record)."""

    def __init__(self, count: int, begin_s: float, lasts_s: float) -> None:
        rng = np.random.default_rng(4)
        rates = rng.gamma(0.5, 2.0 * MEAN_RATE_PER_S, count)
        self.changes: list[Float64s] = [
            np.sort(rng.uniform(begin_s, begin_s + lasts_s, rng.poisson(rate * lasts_s))) for rate in rates
        ]
        self.begin_s = begin_s
        self.served: list[tuple[float, int]] = []
        self.requests_s: list[float] = []

    def item(self, number: int, now_s: float) -> dict[str, int]:
        """Return the record as it is now, and remember that it was served."""
        self.served.append((now_s, number))
        version = int(np.searchsorted(self.changes[number], now_s, side="right"))
        return {"id": number, "version": version, "updated": self._updated(number, now_s)}

    def changed_since(self, since: int, now_s: float) -> list[int]:
        """Return the records that changed at ``since`` (milliseconds) or later, the earliest change first."""
        at = {number: self._updated(number, now_s) for number in range(len(self.changes))}
        return sorted(
            (number for number in at if at[number] >= since), key=lambda number: (at[number], number)
        )

    def _updated(self, number: int, now_s: float) -> int:
        before = self.changes[number][self.changes[number] <= now_s]
        return round(1000.0 * (before[-1] if before.size else self.begin_s))


def rows(*, quick: bool) -> list[Row]:
    """Measure the engine, and look-ups in turn at the times of its requests."""
    count, for_s = (150, 5.0) if quick else (600, 60.0)
    records = Records(count, CLOCK.now_s(), for_s + 60.0)

    async def listed(request: web.Request) -> web.Response:
        now_s = CLOCK.now_s()
        records.requests_s.append(now_s)
        first = PAGE_SIZE * (int(request.query["page"]) - 1)
        found = records.changed_since(int(request.query.get("since", "0")), now_s)
        page = [records.item(number, now_s) for number in found[first : first + PAGE_SIZE]]
        return web.json_response({"items": page, "total": len(found)})

    async def looked_up(request: web.Request) -> web.Response:
        now_s = CLOCK.now_s()
        records.requests_s.append(now_s)
        return web.json_response(records.item(int(request.match_info["id"]), now_s))

    with served_api({"/items": listed, "/items/{id}": looked_up}) as site:
        _run(site.url, for_s)
    times_s, end_s = records.requests_s, CLOCK.now_s()
    window = times_s[0] + (end_s - times_s[0]) / 3, end_s
    ours = _freshness_and_lag(records, records.served, window)
    in_turn = [(time_s, at % count) for at, time_s in enumerate(times_s)]
    rival = _freshness_and_lag(records, in_turn, window)
    return [
        Row(f"freshness of {count} records, {len(times_s)} requests", ours[0], "", at_least=rival[0]),
        Row("freshness by look-ups in turn", rival[0], ""),
        Row("content lag", ours[1], "s"),
        Row("content lag of look-ups in turn", rival[1], "s", ratio=ours[1] / rival[1], at_most=1.0),
    ]


def _run(url: str, for_s: float) -> None:
    text = f"""
[budget]
requests = "{BUDGET_PER_S}/s"
[[source]]
name = "items"
kind = "api"
list = "{url}/items?page={{page}}&since={{cursor}}"
look_up = "{url}/items/{{key}}"
rows = "items"
total = "total"
key = "id"
cursor = "updated"
overlap = "0.1s"
listings_every = "1s"
full_every = "1h"
page_size = {PAGE_SIZE}
min_interval = 0
delay = 0
respect_robots = false
allow_private = true
"""
    with (
        tempfile.TemporaryDirectory() as name,
        make_engine(parse_settings(text), Path(name), seed=1) as engine,
    ):
        engine.run(for_s=for_s)


def _freshness_and_lag(
    records: Records, served: Iterable[tuple[float, int]], window: tuple[float, float]
) -> tuple[float, float]:
    """Return the mean share of fresh copies, and the mean over records of Σ(t − t_i) over missed changes t_i
    (Yang et al. 2010), over times t in the ``window``."""
    times = np.linspace(*window, 400)
    by_record: dict[int, list[float]] = {}
    for time_s, number in served:
        by_record.setdefault(number, []).append(time_s)
    fresh = lag = 0.0
    for number, changes in enumerate(records.changes):
        seen_s = np.array([-np.inf, *sorted(by_record.get(number, ()))])
        last_s = seen_s[np.searchsorted(seen_s, times, side="right") - 1]
        missed = (changes[:, None] <= times) & (changes[:, None] > last_s)
        fresh += float(np.mean(~missed.any(axis=0)))
        lag += float(np.mean(np.where(missed, times - changes[:, None], 0.0).sum(axis=0)))
    return fresh / len(records.changes), lag / len(records.changes)
