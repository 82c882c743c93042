"""The engine over very many items: registered from a file, started, asked for its status.

``python -m bench.engine_scale FOLDER SECONDS`` runs the engine there for so long and prints how long its
first poll took, how many it made, and how long ``status`` takes.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from afresh.engine.app import open_engine
from afresh.engine.mind.beliefs import pack
from afresh.engine.run.loop import Progress
from afresh.policy.adaptive import Adaptive
from afresh.policy.policy import Start
from afresh.stores.rows import ACTIVE
from afresh.stores.rows import Row as Stored
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.tables import NUMBERED, PACE, TABLES
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
delay = 0
concurrency = {AT_ONCE}
"""
_TYPICAL = 1000  # different histories
_LOADED = 20_000


def rows(*, quick: bool) -> list[Row]:
    """A million items, and ten: all of them polled before, and believed to change at different rates."""
    sizes = (2_000,) if quick else (1_000_000, 10_000_000)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        found += registered(Path(folder), sizes[0], judged=not quick)
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder, site() as port:
            # Of ten million, long enough that all are read beside the first polls.
            lasts_s = 2.0 if quick else 20.0 if size <= 1_000_000 else 120.0
            found += kept(Path(folder), port, size, lasts_s, judged=not quick)
    return found


def registered(folder: Path, size: int, *, judged: bool) -> list[Row]:
    """``afresh add --file`` of so many addresses."""
    (folder / "afresh.toml").write_text(SETTINGS)
    addresses = folder / "addresses.txt"
    with addresses.open("w") as file:
        file.writelines(f"https://host{n % 5000}.example.org/path/to/page-{n}.html\n" for n in range(size))
    took = run([sys.executable, "-m", "afresh", "-C", str(folder), "add", "--file", str(addresses)])
    return [
        Row(f"{size:.0e} items added from a file", took.seconds, "s", at_most=120.0 if judged else None),
        Row("memory", took.peak_bytes / 1e9, "GB"),
    ]


def kept(folder: Path, port: int, size: int, lasts_s: float, *, judged: bool) -> list[Row]:
    """``run`` and ``status`` over items that were polled before."""
    (folder / "afresh.toml").write_text(SETTINGS)
    fill(folder / "afresh.db", port, size)
    took = run_python("bench.engine_scale", str(folder), str(lasts_s))
    first_s, polls, cpu_s, status_s = map(float, took.output.split())
    most_gb = 1.5 if judged and size <= 1_000_000 else None
    return [
        Row(f"{size:.0e} items: first poll after", first_s, "s", at_most=30.0 if judged else None),
        Row(f"{size:.0e} items: polls", polls / lasts_s, "/s"),
        Row(f"{size:.0e} items: processor time", 1e6 * cpu_s / max(polls, 1.0), "µs/poll"),
        Row(f"{size:.0e} items: memory", took.peak_bytes / 1e9, "GB", at_most=most_gb),
        Row(f"{size:.0e} items: status", status_s, "s", at_most=2.0 if judged else None),
    ]


def fill(path: Path, port: int, size: int) -> None:
    """A store of items that were polled before, some longer ago than others."""
    with SqliteStore(path) as store:
        store.tables.load("name", [(1, "web"), (2, f"127.0.0.1:{port}")], {})
        typical = beliefs(size)
        for first in range(1, size + 1, _LOADED):
            last = min(first + _LOADED, size + 1)
            store.tables.load("item", list(_items(first, last, port, size, typical)), {})
        store.tables.load("tally", [(1, 2, ACTIVE, size)], {})
        marks = dict.fromkeys((*NUMBERED, *PACE), 0.0) | {"item": size, "name": 2}
        store.tables.finish(marks, {})


def _items(first: int, last: int, port: int, size: int, typical: list[bytes]) -> Iterator[Stored]:
    now_s, round_s = time.time(), size / BUDGET
    names = TABLES["item"].columns
    usual = dict.fromkeys(names) | {
        "added_s": now_s - 9 * round_s, "selector": "", "source_id": 1, "group_id": 2, "weight": 1.0,
        "cost": 1.0, "min_interval_s": 0.0, "max_interval_s": np.inf, "status": ACTIVE, "polls": 9,
        "changes": 3, "failures": 0, "version": 0, "problem": "",
    }  # fmt: skip
    for item_id in range(first, last):
        polled_s = now_s - round_s * (item_id * 0.618 % 1.0)
        own = {"id": item_id, "key": f"http://127.0.0.1:{port}/{item_id}", "polled_s": polled_s}
        own |= {"due_s": polled_s + round_s, "belief": typical[item_id % _TYPICAL]}
        yield tuple((usual | own).values())


def beliefs(size: int) -> list[bytes]:
    """What a store keeps of items with different histories, among so many."""
    rng, interval_s = np.random.default_rng(0), size / BUDGET
    policy = Adaptive(Start.of(_TYPICAL, _TYPICAL / interval_s))
    every, rates = np.arange(_TYPICAL), rng.gamma(0.5, 1.0, _TYPICAL) / interval_s
    for poll in range(1, 10):
        changed = rng.random(_TYPICAL) < -np.expm1(-rates * interval_s)
        policy.observe(every, poll * interval_s, changed)
    return pack(policy.rows(every), np.full(_TYPICAL, -np.inf), np.zeros((_TYPICAL, 0), dtype=np.int64))


def main(folder: str, lasts_s: float) -> None:
    """Run, and say what it took."""
    with open_engine(folder) as engine:
        start_s, first_s = time.perf_counter(), math.inf

        def report(progress: Progress) -> None:
            nonlocal first_s
            if progress.polls:
                first_s = min(first_s, time.perf_counter() - start_s)

        done = engine.run(for_s=lasts_s, report=report)
        cpu_s, start_s = time.process_time(), time.perf_counter()
        engine.status()
        print(first_s, done.polls, cpu_s, time.perf_counter() - start_s)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
