"""The dashboard over a million items: time of each page at the server, and what an open page costs.

The processor's share of an open dashboard: an engine in this process, its dashboard beside it, polls a
loopback site in turns with and without a page open, each turn as long as the other; the site and the page are
other processes. What the turns with a page take more is its share, with the standard error over the pairs.
"""

from __future__ import annotations

import http.client
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import quote

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.stores.cursors import write_cursor
from afresh.values.items import SORTS, ItemQuery, NewItem
from afresh.values.lease import Lease
from afresh.values.outcome import Observation, Outcome
from afresh.web.app import make_app
from afresh.web.server import Server, listen
from bench.polling import site
from bench.rows import Row
from bench.timing import seconds

_DAY_S = 86400.0
_POLLED, _GROUP, _BUDGET = 50_000, 1000, 100
_CORE = "% of a core"
_OVERVIEW_MS, _PAGE_MS = 100.0, 200.0
_PAGES = {
    "overview": "/",
    "overview, API": "/api/v1/status",
    "items, search for what many have": "/items?text=/99",
    "items, search for the last": "/items?text=/{last}",
    "items, search for the last by name": "/items?text=/{last}&sort=key",
    "items, search for what is nowhere": "/items?text=nowhere-at-all",
    "one item": "/item?key=https%3A%2F%2Fhost7.example%2F7",
    "plan": "/plan",
    "sources": "/sources",
}
_SLIDER = "plan, another budget each time"
_LOCAL = 'delay = "0s"\nallow_private = true\nmin_interval = 0\n'
_SETTINGS = '[budget]\nrequests = "{budget}/s"\n[[source]]\nname = "web"\n' + _LOCAL


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a run: items, timings of a page, seconds open at rest, seconds of a turn, pairs of turns."""

    items: int
    repeats: int
    at_rest_s: float
    turn_s: float
    pairs: int


# At rest, a million items are read about every twenty seconds: the mean is over more than one reading.
_QUICK, _WHOLE = Sizes(5_000, 1, 1.0, 1.0, 1), Sizes(1_000_000, 10, 40.0, 4.0, 7)


def rows(*, quick: bool) -> list[Row]:
    """Measure pages over many items, and then the shares of the processor."""
    sizes = _QUICK if quick else _WHOLE
    with tempfile.TemporaryDirectory() as folder:
        found = _page_rows(Path(folder), sizes, judged=not quick)
        return found + _share_rows(Path(folder) / "shares", sizes)


def _page_rows(folder: Path, sizes: Sizes, *, judged: bool) -> list[Row]:
    size = f"{sizes.items:.0e} items"
    with make_engine(parse_settings(_SETTINGS.format(budget=_BUDGET)), folder, seed=1) as engine:
        _say(f"a store of {size} is filled")
        fill(engine, sizes.items)
        _say("the first look, the first plan")
        start_s = time.perf_counter()
        with Server(make_app(engine, None), listen("127.0.0.1", 0)) as server:
            first_s = time.perf_counter() - start_s
            host = server.address.removeprefix("http://").rstrip("/")
            begun_s = time.perf_counter()
            _get(host, "/plan")
            plan_s = time.perf_counter() - begun_s
            jobs = _jobs(engine, host, sizes.items)
            _say(f"{len(jobs)} pages, {sizes.repeats + 1} times each")
            times = _slowest(jobs, sizes.repeats)
            _say(f"a window open at rest, {sizes.at_rest_s:.0f} s")
            share = _share_at_rest(host, sizes.at_rest_s)
    return [
        Row(f"first look at {size}", first_s, "s"),
        Row(f"first plan, {size}", 1e3 * plan_s, "ms"),
        *(
            Row(f"{name}, {size}", 1e3 * took_s, "ms", at_most=_most_ms(name) if judged else None)
            for name, took_s in times.items()
        ),
        Row(f"dashboard over {size} at rest, open in one window", 100 * share, _CORE),
    ]


def _slowest(jobs: list[tuple[str, Callable[[], bytes]]], repeats: int) -> dict[str, float]:
    """Return the seconds by name; of jobs with the same name, those of the slowest."""
    times: dict[str, float] = {}
    for (name, _), took_s in zip(jobs, seconds(*(job for _, job in jobs), repeats=repeats), strict=True):
        times[name] = max(took_s, times.get(name, 0.0))
    return times


def _most_ms(name: str) -> float:
    return _OVERVIEW_MS if name.startswith("overview") else _PAGE_MS


def _jobs(engine: Engine, host: str, size: int) -> list[tuple[str, Callable[[], bytes]]]:
    """Return the jobs by name: each page; each sort at its first, last and middle page; the slider."""
    paths = [(name, path.format(last=size - 1)) for name, path in _PAGES.items()]
    (middle,) = engine.store.items.by_id([size // 2])
    for sort in SORTS:
        first = json.loads(_get(host, f"/api/v1/items?sort={sort}&limit=1"))["cursor"]
        mark = first.partition("[")[0]  # of the query; the position follows
        deep = quote(mark + write_cursor(middle, ItemQuery(sort=sort)))
        ways = ("", "&order=down", f"&cursor={deep}")
        paths += [(f"items by {sort}, anywhere", f"/items?sort={sort}{way}") for way in ways]
    budgets = count(_BUDGET + 1)
    slider = (_SLIDER, lambda: _get(host, f"/api/v1/plan/at?budget={next(budgets)}/s"))
    return [*((name, partial(_get, host, path)) for name, path in paths), slider]


def fill(engine: Engine, size: int) -> None:
    """Add items of a thousand hosts, of which the first are polled."""
    store, now_s = engine.store, time.time()
    keys = (f"https://host{number % 1000}.example/{number}" for number in range(size))
    store.items.add((NewItem(key, "web", key.split("/")[2]) for key in keys), now_s - _DAY_S)
    for first in range(1, min(size, _POLLED) + 1, _GROUP):
        ids = range(first, min(first + _GROUP, size + 1))
        leases = store.leases.take(ids, now_s - _DAY_S, 60.0)
        store.commit([_polled(lease, now_s) for lease in leases])


def _polled(lease: Lease, now_s: float) -> Outcome:
    seen = Observation(lease.item_id, now_s - 3600.0, _DAY_S, changed=lease.item_id % 3 == 0)
    return Outcome(lease, now_s, now_s + lease.item_id % 7200 - 60.0, seen)


def _get(host: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(host, timeout=120)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, (path, answer.status)
    connection.close()
    return body


@contextmanager
def _open_page(host: str, lasts_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """Keep a page open, as the server sees it, from a process of its own that ends after ``lasts_s``."""
    command = [sys.executable, "-m", "bench.open_page", host, str(lasts_s)]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.terminate()


def _share_at_rest(host: str, lasts_s: float) -> float:
    """Return this process's share of the processor while a page is open."""
    begun_s = time.process_time()
    with _open_page(host, lasts_s) as page:
        page.wait()
    return (time.process_time() - begun_s) / lasts_s


def _share_rows(folder: Path, sizes: Sizes) -> list[Row]:
    """Measure the processor's share of an engine beside its dashboard, and what an open page adds."""
    folder.mkdir()
    turn_s, pairs = sizes.turn_s, sizes.pairs
    _say(f"an engine of 50 polls a second, {2 * pairs} turns of {turn_s:g} s with and without a page open")
    shares: dict[bool, list[float]] = {False: [], True: []}
    with site() as port, make_engine(parse_settings(_SETTINGS.format(budget=50)), folder, seed=1) as engine:
        engine.add([f"http://127.0.0.1:{port}/{number}" for number in range(200)])
        with Server(make_app(engine, None), listen("127.0.0.1", 0)) as server:
            host = server.address.removeprefix("http://").rstrip("/")
            engine.run(for_s=turn_s)  # first polls differ from later ones
            for pair in range(pairs):
                for is_open in (
                    pair % 2 > 0,
                    pair % 2 == 0,
                ):  # each comes first in turn, so that a drift cancels
                    with _open_page(host, math.inf) if is_open else nullcontext():
                        shares[is_open].append(_share(engine, turn_s))
    more = [opened - closed for opened, closed in zip(shares[True], shares[False], strict=True)]
    mean = sum(more) / pairs
    error = math.sqrt(sum((one - mean) ** 2 for one in more) / max(pairs - 1, 1) / pairs)
    return [
        Row("engine, 50 polls a second, its dashboard closed", 100 * sum(shares[False]) / pairs, _CORE),
        Row("the dashboard open in one window: more", 100 * mean, _CORE),
        Row("its standard error", 100 * error, _CORE),
    ]


def _share(engine: Engine, lasts_s: float) -> float:
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    engine.run(for_s=lasts_s)
    return (time.process_time() - cpu_s) / (time.perf_counter() - wall_s)


def _say(words: str) -> None:
    """Print what is being done, since it takes minutes."""
    print(f"web: {words} …", file=sys.stderr, flush=True)
