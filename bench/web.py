"""The dashboard over a million items: time of each page at the server, and what an open page costs.

The processor's share of an open dashboard: an engine in this process, its dashboard beside it, polls a
loopback site in turns with and without a page open, each turn as long as the other; the site and the page are
other processes. What the turns with a page take more is its share, with the standard error over the pairs.
"""

from __future__ import annotations

import http.client
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.reading import read
from afresh.values.items import NewItem
from afresh.values.lease import Lease
from afresh.values.outcome import Observation, Outcome
from afresh.web.app import make_app
from afresh.web.server import Server, listen
from bench.polling import site
from bench.rows import Row
from bench.timing import seconds

_DAY_S = 86400.0
_POLLED, _GROUP = 50_000, 1000
_CORE = "% of a core"
_PAGES = {
    "overview": "/",
    "overview, API": "/api/v1/status",
    "items": "/items",
    "items by name, falling": "/items?sort=key&order=down",
    "items, search": "/items?text=/99",
    "items, search for the last": "/items?text=/{last}",
    "items, search for the last by name": "/items?text=/{last}&sort=key",
    "items, search for what is nowhere": "/items?text=nowhere-at-all",
    "one item": "/item?key=https%3A%2F%2Fhost7.example%2F7",
    "plan": "/plan",
    "sources": "/sources",
}
_MOST_MS = {name: 100.0 if name.startswith("overview") else 200.0 for name in _PAGES if name != "plan"}
_SETTINGS = (
    '[budget]\nrequests = "{budget}/s"\n[[source]]\nname = "web"\ndelay = "0s"\nallow_private = true\n'
)


def rows(*, quick: bool) -> list[Row]:
    """Pages over many items, then the processor's shares."""
    size, repeats, lasts_s, pairs = (5_000, 1, 1.0, 1) if quick else (1_000_000, 7, 10.0, 6)
    with tempfile.TemporaryDirectory() as folder:
        # A look at so many items is taken every half minute at most: the mean is over several.
        found = _page_rows(Path(folder), size, repeats, lasts_s if quick else 75.0, judged=not quick)
        return found + _share_rows(Path(folder) / "shares", lasts_s, pairs)


def _page_rows(folder: Path, size: int, repeats: int, lasts_s: float, *, judged: bool) -> list[Row]:
    with make_engine(read(_SETTINGS.format(budget=100)), folder, seed=1) as engine:
        fill(engine, size)
        start_s = time.perf_counter()
        with Server(make_app(engine, None), listen("127.0.0.1", 0)) as server:
            first_s = time.perf_counter() - start_s
            host = server.address.removeprefix("http://").rstrip("/")
            paths = [path.format(last=size - 1) for path in _PAGES.values()]
            times = seconds(*(partial(_get, host, path) for path in paths), repeats=repeats)
            begun_s = time.process_time()
            with _open_page(host, lasts_s) as page:
                page.wait()
            share = (time.process_time() - begun_s) / lasts_s
    most = _MOST_MS if judged else {}
    return [
        Row(f"first look at {size:.0e} items", first_s, "s"),
        *(
            Row(f"{name}, {size:.0e} items", 1e3 * took_s, "ms", at_most=most.get(name))
            for name, took_s in zip(_PAGES, times, strict=True)
        ),
        Row(f"dashboard over {size:.0e} items at rest, open in one window", 100 * share, _CORE),
    ]


def fill(engine: Engine, size: int) -> None:
    """Items of a thousand hosts, the first of them polled."""
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


def _get(host: str, path: str) -> None:
    connection = http.client.HTTPConnection(host, timeout=120)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, (path, answer.status)
    connection.close()


@contextmanager
def _open_page(host: str, lasts_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """An open page, as far as the server is concerned, in a process of its own that ends after a while."""
    command = [sys.executable, "-m", "bench.open_page", host, str(lasts_s)]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.terminate()


def _share_rows(folder: Path, lasts_s: float, pairs: int) -> list[Row]:
    """The processor's share of an engine beside its dashboard, and what an open page adds."""
    folder.mkdir()
    shares: dict[bool, list[float]] = {False: [], True: []}
    with site() as port, make_engine(read(_SETTINGS.format(budget=50)), folder, seed=1) as engine:
        engine.add([f"http://127.0.0.1:{port}/{number}" for number in range(200)])
        with Server(make_app(engine, None), listen("127.0.0.1", 0)) as server:
            host = server.address.removeprefix("http://").rstrip("/")
            engine.run(for_s=lasts_s)  # the first polls of items are not like the others
            for pair in range(pairs):
                for is_open in (pair % 2 > 0, pair % 2 == 0):  # either first in turn: no drift counts
                    with _open_page(host, math.inf) if is_open else nullcontext():
                        shares[is_open].append(_share(engine, lasts_s))
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
