"""The dashboard over a million items: time of each page at the server, and what an open page costs.

The processor's share of an open dashboard is that of engine and dashboard together, watched by one listener,
less that of the engine alone, both polling a loopback site at the same budget.
"""

from __future__ import annotations

import http.client
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings import read
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
_PAGES = {
    "overview": "/",
    "overview, API": "/api/v1/status",
    "items": "/items",
    "items by name, falling": "/items?sort=key&order=down",
    "items, search": "/items?text=/99",
    "one item": "/item?key=https%3A%2F%2Fhost7.example%2F7",
    "plan": "/plan",
}
_MOST_MS = {"overview": 100.0, "overview, API": 100.0, "items": 200.0, "items, search": 200.0}
_SETTINGS = (
    '[budget]\nrequests = "{budget}/s"\n[[source]]\nname = "web"\ndelay = "0s"\nallow_private = true\n'
)


def rows(*, quick: bool) -> list[Row]:
    """Pages over many items, then the processor's shares."""
    size, repeats, lasts_s = (5_000, 1, 2.0) if quick else (1_000_000, 7, 20.0)
    with tempfile.TemporaryDirectory() as folder:
        found = _page_rows(Path(folder), size, repeats, lasts_s, judged=not quick)
        alone = _share(Path(folder) / "alone", lasts_s, watched=False)
        together = _share(Path(folder) / "together", lasts_s, watched=True)
    return [
        *found,
        Row("engine alone, 50 polls a second", 100 * alone, "% of a core"),
        Row("its dashboard, open in one window", 100 * max(together - alone, 0.0), "% of a core"),
    ]


def _page_rows(folder: Path, size: int, repeats: int, lasts_s: float, *, judged: bool) -> list[Row]:
    with make_engine(read(_SETTINGS.format(budget=100)), folder, seed=1) as engine:
        fill(engine, size)
        start_s = time.perf_counter()
        with Server(make_app(engine, None), listen("127.0.0.1", 0)) as server:
            first_s = time.perf_counter() - start_s
            host = server.address.removeprefix("http://").rstrip("/")
            times = seconds(*(partial(_get, host, path) for path in _PAGES.values()), repeats=repeats)
            with _listener(host):
                cpu_s, wall_s = time.process_time(), time.perf_counter()
                time.sleep(lasts_s)
                share = (time.process_time() - cpu_s) / (time.perf_counter() - wall_s)
    most = _MOST_MS if judged else {}
    return [
        Row(f"first look at {size:.0e} items", first_s, "s"),
        *(
            Row(f"{name}, {size:.0e} items", 1e3 * took_s, "ms", at_most=most.get(name))
            for name, took_s in zip(_PAGES, times, strict=True)
        ),
        Row(f"dashboard over {size:.0e} items, open in one window", 100 * share, "% of a core"),
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
def _listener(host: str) -> Iterator[None]:
    """An open page, as far as the server is concerned: it reads the live events, now and then the course."""
    over = threading.Event()

    def listen_on() -> None:
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request("GET", "/live")
        answer = connection.getresponse()
        beats = 0
        while not over.is_set() and answer.readline():
            beats += 1
            if beats % 30 == 0:  # an event has three lines, and the course a new point every ten
                _get(host, "/api/v1/course")
        connection.close()

    thread = threading.Thread(target=listen_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _share(folder: Path, lasts_s: float, *, watched: bool) -> float:
    """The processor's share of an engine, with or without a dashboard that is watched."""
    folder.mkdir()
    with site() as port, make_engine(read(_SETTINGS.format(budget=50)), folder, seed=1) as engine:
        engine.add([f"http://127.0.0.1:{port}/{number}" for number in range(1000)])
        if not watched:
            return _run(engine, lasts_s)
        server = Server(make_app(engine, None), listen("127.0.0.1", 0))
        with server, _listener(server.address.removeprefix("http://").rstrip("/")):
            return _run(engine, lasts_s)


def _run(engine: Engine, lasts_s: float) -> float:
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    engine.run(for_s=lasts_s)
    return (time.process_time() - cpu_s) / (time.perf_counter() - wall_s)
