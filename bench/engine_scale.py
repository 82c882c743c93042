"""The engine over very many items: registered from a file, started, asked for its status.

``python -m bench.engine_scale FOLDER SECONDS MOST`` runs the engine there until all items are read and for so
many seconds more, at most so long in all, and prints what it saw. Every stage says on standard error that it
begins.
"""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from afresh.engine.app import open_engine
from afresh.engine.logs import LOGGER
from afresh.engine.runner.background_load import MANY
from afresh.engine.runner.engine_run import RunProgress
from afresh.engine.scheduler.stored_beliefs import pack
from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import PolicyInput
from afresh.stores.sqlite.store import SqliteStore
from bench.polling import AT_ONCE, site
from bench.process import run, run_python
from bench.rows import Row

BUDGET = 2000.0
SETTINGS = f"""
[budget]
requests = "{BUDGET:g}/s"
[[source]]
name = "web"
allow_private = true
min_interval = 0
delay = 0
concurrency = {AT_ONCE}
"""
_TYPICAL = 1000  # different histories
_BLOCK = 1_000_000
_BEFORE = 9  # polls of every item
_AFTER_S, _MOST_S = 30.0, 600.0  # how long to measure once all items are read, and to wait for that
_HOSTS, _ADDRESSES = 5000, "https://host{host}.example.org/path/to/page-{number}.html\n"

_ITEMS = """
WITH RECURSIVE numbers (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM numbers WHERE n < :last)
INSERT INTO item (id, source_id, key, added_s)
SELECT n, 1, printf('http://127.0.0.1:%d/%09d', :port, n), :now_s - 9 * :round_s FROM numbers
"""
_STATES = """
WITH RECURSIVE numbers (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM numbers WHERE n < :last),
     polled (n, time_s) AS (SELECT n, :now_s - :round_s * (n * 618033 % 1000003) / 1000003 FROM numbers)
INSERT INTO state (item_id, source_id, group_id, status, weight, cost, min_interval_s, max_interval_s,
                   due_s, polled_s, polls, changes, belief)
SELECT polled.n, 1, 2, 0, 1, 1, 0, 9e999, time_s + :round_s, time_s, :before, 3, typical.belief
FROM polled CROSS JOIN typical ON typical.n = polled.n % :typical
"""
_INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'state' AND sql > ''"
_TWICE = "SELECT count(*) FROM state WHERE polls > ? AND item_id NOT IN (SELECT item_id FROM audit)"


def rows(*, quick: bool) -> list[Row]:
    """Measure a million and ten million items, polled before and believed to change at different rates."""
    sizes = (2_000,) if quick else (MANY, 10 * MANY)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        found += measure_adding(Path(folder), sizes[0], judged=not quick)
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder, site() as port:
            found += measure_run(Path(folder), port, size, 2.0 if quick else _AFTER_S, judged=not quick)
    return found


def measure_adding(folder: Path, size: int, *, judged: bool) -> list[Row]:
    """Measure ``afresh add --file`` with ``size`` addresses."""
    say(f"{size:.0e} items added from a file")
    (folder / "afresh.toml").write_text(SETTINGS)
    addresses = folder / "addresses.txt"
    with addresses.open("w") as file:
        file.writelines(_ADDRESSES.format(host=n % _HOSTS, number=n) for n in range(size))
    took = run([sys.executable, "-m", "afresh", "-C", str(folder), "add", "--file", str(addresses)])
    return [
        Row(f"{size:.0e} items added from a file", took.seconds, "s", at_most=120.0 if judged else None),
        Row("memory", took.peak_bytes / 1e9, "GB"),
    ]


@dataclass(frozen=True, slots=True)
class RunMeasures:
    """What was measured of a run: seconds since its start, polls per second before and after the reading.

    ``pause_s`` is the longest time without a poll, once there was one.
    """

    first_s: float
    read_s: float
    pause_s: float
    beside_per_s: float
    after_per_s: float
    cpu_s: float
    polls: int
    twice: int
    status_s: float


def measure_run(folder: Path, port: int, size: int, after_s: float, *, judged: bool) -> list[Row]:
    """Measure ``run`` and ``status`` over items that were polled before."""
    (folder / "afresh.toml").write_text(SETTINGS)
    fill(folder / "afresh.db", port, size)
    say(f"{size:.0e} items: run")
    took = run_python("bench.engine_scale", str(folder), str(after_s), str(_MOST_S))
    seen = RunMeasures(**json.loads(took.output))
    name = f"{size:.0e} items"
    found = [
        Row(f"{name}: first poll after", seen.first_s, "s", at_most=30.0 if judged else None),
        Row(f"{name}: polls", seen.after_per_s, "/s"),
        Row(f"{name}: longest pause", seen.pause_s, "s"),
        Row(f"{name}: polled twice but for audits", seen.twice, "", at_most=0.0 if judged else None),
        Row(f"{name}: processor time", 1e6 * seen.cpu_s / max(seen.polls, 1), "µs/poll"),
        Row(f"{name}: memory", took.peak_bytes / 1e9, "GB", at_most=1.5 if judged and size <= MANY else None),
        Row(f"{name}: status", seen.status_s, "s", at_most=2.0 if judged else None),
        measure_due(folder, name, judged=judged and size <= MANY),
    ]
    if size > MANY:
        beside = Row(f"{name}: polls while they are read", seen.beside_per_s, "/s")
        found[1:1] = [Row(f"{name}: all read after", seen.read_s, "s"), beside]
    return found


def measure_due(folder: Path, name: str, *, judged: bool) -> Row:
    """Measure ``afresh due`` without a running engine."""
    took = run([sys.executable, "-m", "afresh", "-C", str(folder), "due", "--k", "100", "--lease", "1m"])
    return Row(f"{name}: due", took.seconds, "s", at_most=5.0 if judged else None)


def fill(path: Path, port: int, size: int) -> None:
    """Write a store of items that were polled at different times; indexes are made last, which is faster."""
    SqliteStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -262144"):
            connection.execute(f"PRAGMA {setting}")
        indexes = connection.execute(_INDEXES).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        connection.execute("CREATE TEMP TABLE typical (n INTEGER PRIMARY KEY, belief BLOB)")
        connection.executemany("INSERT INTO typical VALUES (?, ?)", enumerate(beliefs(size)))
        connection.execute("INSERT INTO name VALUES (1, 'web'), (2, ?)", (f"127.0.0.1:{port}",))
        connection.execute("INSERT INTO tally VALUES (1, 2, 0, ?)", (size,))
        usual = {"port": port, "now_s": time.time(), "round_s": size / BUDGET}
        usual |= {"before": _BEFORE, "typical": _TYPICAL}
        for first in range(1, size + 1, _BLOCK):
            say(f"{size:.0e} items: kept from {first:,} on")
            block = usual | {"first": first, "last": min(first + _BLOCK - 1, size)}
            for statement in (_ITEMS, _STATES):
                connection.execute(statement, block)
        for name, statement in indexes:
            say(f"{size:.0e} items: index {name}")
            connection.execute(statement)


def beliefs(size: int) -> list[bytes]:
    """Return the stored beliefs of items with different histories, as in a project of ``size`` items."""
    rng, interval_s = np.random.default_rng(0), size / BUDGET
    policy = Adaptive(PolicyInput.of(_TYPICAL, _TYPICAL / interval_s))
    every, rates = np.arange(_TYPICAL), rng.gamma(0.5, 1.0, _TYPICAL) / interval_s
    for poll in range(1, _BEFORE + 1):
        changed = rng.random(_TYPICAL) < -np.expm1(-rates * interval_s)
        policy.observe(every, poll * interval_s, changed)
    return pack(policy.rows(every), np.full(_TYPICAL, -np.inf), np.zeros((_TYPICAL, 0), dtype=np.int64))


def say(stage: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {stage}", file=sys.stderr, flush=True)


class RunWatcher(logging.Handler):
    """Records when polls are made and when all items were read; ends the run some time after that."""

    def __init__(self, after_s: float, *, read: bool) -> None:
        super().__init__()
        self._start_s, self._after_s = time.perf_counter(), after_s
        self.read_s = 0.0 if read else math.inf
        self.course: list[tuple[float, int]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Record when the engine logs that all items are read."""
        if record.getMessage() == "all items are read":
            self.read_s = time.perf_counter() - self._start_s

    def report(self, progress: RunProgress) -> None:
        """Record the number of polls, and end the run when it has lasted long enough."""
        now_s = time.perf_counter() - self._start_s
        if progress.polls > (self.course[-1][1] if self.course else 0):
            self.course.append((now_s, progress.polls))
        if self.course and now_s > max(self.read_s, self.course[0][0]) + self._after_s:
            os.kill(os.getpid(), signal.SIGTERM)

    def pace(self, after_s: float, before_s: float) -> float:
        """Return the polls per second between two times."""
        some = [(time_s, polls) for time_s, polls in self.course if after_s <= time_s <= before_s]
        if len(some) < 2:
            return math.nan
        return (some[-1][1] - some[0][1]) / (some[-1][0] - some[0][0])

    def pause_s(self) -> float:
        """Return the longest time without a further poll."""
        moved = [after[0] - before[0] for before, after in zip(self.course, self.course[1:], strict=False)]
        return max(moved, default=math.nan)


def main(folder: str, after_s: float, most_s: float) -> None:
    """Run the engine, and print what was measured."""
    LOGGER.setLevel(logging.INFO)
    with open_engine(folder) as engine:
        items = sum(count.items for count in engine.store.items.counts())
        watcher = RunWatcher(after_s, read=items <= MANY)
        LOGGER.addHandler(watcher)
        done = engine.run(for_s=most_s, report=watcher.report, signals=True)
        cpu_s, start_s = time.process_time(), time.perf_counter()
        engine.status()
        status_s = time.perf_counter() - start_s
    with closing(sqlite3.connect(Path(folder) / "afresh.db")) as connection:
        (twice,) = connection.execute(_TWICE, (_BEFORE + 1,)).fetchone()
    first_s, read_s = watcher.course[0][0], watcher.read_s
    paces = watcher.pace(0.0, read_s), watcher.pace(read_s, math.inf)
    print(
        json.dumps(
            asdict(
                RunMeasures(first_s, read_s, watcher.pause_s(), *paces, cpu_s, done.polls, twice, status_s)
            )
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
