"""A fleet of real engines that is disturbed in every way, and everything that is recorded about it.

Each engine is a process with a folder, a clock and, on PostgreSQL, a network of its own. The site writes down
each request, a hook writes down each of its calls, and the engines say which outcomes they refused.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import numpy as np
from tests.engine import afresh_with_jumps
from tests.engine.history import (
    FedChange,
    ItemHistory,
    Told,
    judge_budget,
    judge_feed,
    judge_order,
    judge_outcomes,
)
from tests.engine.living import CLOCK, LivingSite
from tests.servers.postgres_proxy import PostgresProxy
from tests.servers.quick_afresh import QuickAfresh, QuickProcess
from tests.waiting import LIMIT_S, until

from afresh.engine.app import open_engine
from afresh.stores.store import Store
from afresh.values.changes import FeedEntry, read_feed_cursor

HOSTS = 4
BUDGET, BURST, CLAIM_S, LEASE_S = 60.0, 12.0, 1.5, 2.0
# Requests reach the site's log late when the machine is busy. What a fleet spends too much adds up.
JITTER_S = 3.0
_FEED_EVERY_S = 0.005  # so often that commits are under way while the feed is read
_SETTINGS = f"""
[store]
url = "{{url}}"
versions = 10000
[budget]
requests = "{BUDGET}/s"
burst = {BURST:g}
[run]
claim = "{CLAIM_S}s"
lease = "{LEASE_S}s"
hook_timeout = "2s"
[[source]]
name = "web"
delay = "0s"
concurrency = 4
first_rest = "0.2s"
respect_robots = false
allow_private = true
min_interval = 0
on_change = "told:write"
"""
# One write of one short line is there whole or not at all, also if the process is killed.
_HOOK = """
import os
log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def write(change):
    words = [change.item, change.version, change.content.split()[3].decode()]
    os.write(log, " ".join(map(str, words)).encode() + b"\\n")
"""


class Worker:
    """One engine of the fleet, which is started again and again in the same folder."""

    def __init__(self, quick: QuickAfresh, folder: Path, url: str, proxy: PostgresProxy | None) -> None:
        self.folder, self.proxy, self._quick = folder, proxy, quick
        folder.mkdir()
        (folder / "afresh.toml").write_text(_SETTINGS.format(url=url))
        (folder / "told.py").write_text(_HOOK.format(log=str(folder.parent / "told")))
        self.set_clock(0.0)
        self.process: QuickProcess | None = None
        self.leased: Counter[int] = Counter()  # when it was stopped last

    def set_clock(self, ahead_s: float) -> None:
        (self.folder / afresh_with_jumps.CLOCK_FILE).write_text(f"{ahead_s:20}")

    def start(self) -> None:
        self.close()
        path = {**os.environ, "PYTHONPATH": str(self.folder)}
        with (self.folder / "log").open("ab") as log:
            self.process = self._quick.start(
                "run", folder=self.folder, environment=path, err=log, file=afresh_with_jumps.__file__
            )

    @property
    def running(self) -> QuickProcess:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        return self.process

    def close(self) -> None:
        if self.process is not None:
            self.process.close()
            self.process = None


class FeedReader:
    """Follows the feed by cursors while engines write it, in a thread of its own, and keeps what it gets."""

    def __init__(self, store: Store) -> None:
        self._store, self._over = store, Event()
        self._cursor: str | None = None
        self.followed: list[FedChange] = []
        self._thread = Thread(target=self._follow)
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.wait(_FEED_EVERY_S):
            self._read()

    def _read(self) -> None:
        while entries := self._store.feed.read(self._cursor, 100).entries:
            self.followed += [_fed(entry) for entry in entries]
            self._cursor = entries[-1].cursor

    def end(self) -> None:
        """Read to the end, and stop."""
        self.close()
        self._read()

    def close(self) -> None:
        self._over.set()
        self._thread.join()


def _fed(entry: FeedEntry) -> FedChange:
    return FedChange(read_feed_cursor(entry.cursor).number, entry.key, entry.version)


class RecordedFleet:
    """Engines on one store and one site. ``cut_off`` counts the polls that were under way at kills."""

    def __init__(self, site: LivingSite, workers: Sequence[Worker], url: str) -> None:
        self.site, self.workers, self._url = site, workers, url
        self._folder = workers[0].folder.parent
        self.cut_off: Counter[int] = Counter()
        self.kills = 0
        (self._folder / "told").write_text("")
        (self._folder / "afresh.toml").write_text(_SETTINGS.format(url=url))
        # An engine of ours on the same store, to look with: its network and clock are never disturbed.
        self.engine = open_engine(self._folder)
        self.engine.add(site.urls())
        self.feed_reader = FeedReader(self.engine.store)

    def wait_for_requests(self, count: int) -> None:
        before = len(self.site.requests)
        until(lambda: len(self.site.requests) >= before + count, f"{count} more requests")

    def wait_for_start(self, worker: Worker) -> None:
        """Wait until an engine has joined the others. One that starts without its database ends in words."""
        until(lambda: self._has_joined(worker), "the engine has started")

    def stop(self, worker: Worker) -> None:
        """Stop a worker in the middle of whatever it does, and record what it has leased."""
        worker.running.stop()
        leases = self.engine.store.leases
        held = leases.read([item_id for item_id, _ in leases.open(-1e12)])
        mine = f":{worker.running.pid}:"
        worker.leased = Counter(lease.item_id for lease in held if mine in lease.worker)

    def kill(self, worker: Worker) -> None:
        """Kill a worker at this very moment, and start it again."""
        earlier = worker.leased  # a lease that it lost in a pause, whose refusal it may not have said yet
        self.stop(worker)
        self.cut_off.update(earlier | worker.leased)
        worker.leased = Counter()
        worker.close()
        self.kills += 1
        worker.start()

    def pause(self, worker: Worker, seconds: float) -> None:
        """Stop a worker for longer than its leases and claims last, and let it go on."""
        self.stop(worker)
        Event().wait(seconds)  # the disturbance itself: nothing has to happen within this time
        worker.running.send_signal(signal.SIGCONT)

    def finish(self) -> None:
        """Wait until all pages were polled again and all hooks are told, and end all workers in order."""
        for worker in self.workers:
            worker.set_clock(0.0)
            assert worker.running.returncode is None
        calm_s = CLOCK.now_s()
        until(lambda: self._asked_since(calm_s) == set(range(HOSTS)), "every host is asked again")
        # Hooks are called one at a time: on a busy machine, pages may change faster than they are told of it.
        self.site.stop_changes()
        until(lambda: not self.engine.store.events.waiting(), "the hooks are told", limit_s=10 * LIMIT_S)
        for worker in self.workers:
            self.wait_for_start(worker)
        for worker in self.workers:
            worker.running.send_signal(signal.SIGTERM)
        for worker in self.workers:
            assert worker.process is not None
            assert worker.process.wait(LIMIT_S) == 0, (worker.folder / "log").read_text()[-2000:]
        self.feed_reader.end()

    def _has_joined(self, worker: Worker) -> bool:
        names = [each.name for each in self.engine.store.fleet.workers(-1e12)]
        return any(f":{worker.running.pid}:" in name for name in names)

    def _asked_since(self, since_s: float) -> set[int]:
        return {self.site.host_of(path) for time_s, path in self.site.requests[-400:] if time_s > since_s}

    def told(self) -> list[Told]:
        """Return the calls of the hook, in their order, and those that still wait in the store."""
        lines = (self._folder / "told").read_text().splitlines()
        calls = (line.split() for line in lines)
        return [Told(item, int(number), int(page)) for item, number, page in calls] + self._to_be_told()

    def _to_be_told(self) -> list[Told]:
        store, found = self.engine.store, list[Told]()
        # An event that a killed engine had taken is offered again after a while, but here at once.
        while events := store.events.take(CLOCK.now_s() + 3600.0 * (1 + len(found)), 1000, 1.0):
            for event in events:
                copy = store.copies.get(event.item_id, event.version)
                assert copy is not None
                found.append(Told(event.key, event.version, int(copy.content.split()[3])))
            store.events.done([event.id for event in events])
        return found

    def refused(self) -> Counter[int]:
        """Return how many outcomes of each item the engines refused because another one had polled it."""
        logs = [(worker.folder / "log").read_text() for worker in self.workers]
        found = re.findall(r"outcome was not committed .*?item (\d+):", "\n".join(logs))
        return Counter(map(int, found))

    def problems(self) -> list[str]:
        """Judge the whole history; the list is empty if every promise was kept."""
        served, refused = Counter(path for _, path in self.site.requests), self.refused()
        store = self.engine.store
        found = [f"the store: {problem}" for problem in store.upkeep.check()]
        ids = store.items.ids(self.site.urls())
        items = store.items.by_id(list(ids.values()))
        for item in items:
            copy, last = self.engine.get(item.key), item.key.rsplit("/", 1)[1]
            if copy is None or not copy.content.startswith(f"page {last} version ".encode()):
                found.append(f"{item.key}: the copy is of another page, or there is none")
        histories = [
            ItemHistory(
                item.key,
                served[f"/p/{item.key.rsplit('/', 1)[1]}"],
                item.polls,
                refused[item.id],
                self.cut_off[item.id],
            )
            for item in items
        ]
        found += judge_outcomes(histories)
        versions = {item.key: item.version for item in items}
        found += judge_order(self.told(), versions)
        feed = [_fed(entry) for entry in store.feed.read(limit=10**6).entries]
        found += judge_feed(self.feed_reader.followed, feed, versions)
        found += judge_budget([time_s for time_s, _ in self.site.requests], BUDGET, BURST, JITTER_S)
        return found + [f"{path} was asked for twice at once" for path in self.site.twice]


@contextmanager
def recorded_fleet(
    quick: QuickAfresh, folder: Path, url: str, workers: int, *, pages: int, lasts_s: float = 300.0
) -> Iterator[RecordedFleet]:
    """Start ``workers`` engines on the store at ``url``. On PostgreSQL each has a proxy before the server."""
    folder.mkdir()
    rates = np.random.default_rng(5).gamma(0.5, 1.0, pages).tolist()
    proxies = [_proxy(url) for _ in range(workers)]
    crew = [
        Worker(quick, folder / f"worker{number}", url if proxy is None else _through(proxy, url), proxy)
        for number, proxy in enumerate(proxies)
    ]
    try:
        with LivingSite(rates, hosts=HOSTS, lasts_s=lasts_s) as site:
            fleet = RecordedFleet(site, crew, url)
            with fleet.engine:
                try:
                    for worker in crew:
                        worker.start()
                    yield fleet
                finally:
                    fleet.feed_reader.close()
    finally:
        for worker in crew:
            worker.close()
        for proxy in proxies:
            if proxy is not None:
                proxy.close()


def _proxy(url: str) -> PostgresProxy | None:
    found = re.search(r"host=([^&]+)", url)
    return PostgresProxy(Path(found[1].replace("%2F", "/"))) if found else None


def _through(proxy: PostgresProxy, url: str) -> str:
    """Return the address of the same schema by way of a proxy."""
    return f"{proxy.url}&{url.rpartition('&')[2]}"


Disturbance = Callable[[RecordedFleet, Worker, np.random.Generator], None]
