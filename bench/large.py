"""``plan`` and ``estimate`` of datasets of many files: time per item beside one file, memory, two Ray nodes.

``LARGE_ITEMS`` and ``LARGE_POLLS`` in the environment set the sizes (1e8 by default; 1e9 items need 40 GB of
disk). Items have int64 keys and float32 columns; the output has the columns item and frequency. ``--case``
runs one part of the benchmark: plan-local, plan-duckdb, plan-ray, nodes or estimate. What is read is written
to ``LARGE_FOLDER`` if that is set, and then stays there for the next case; remove it yourself.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.items import make_items
from bench.process import Run, run
from bench.rows import Row

_PART = 5_000_000
_POLLS_PER_ITEM = 10
_GROWTH = 1.5
_TWO_NODES = 0.65


CASES = ("plan-local", "plan-duckdb", "plan-ray", "nodes", "estimate")
_MOST_GB = {"local": 4.0, "duckdb": 4.0, "ray": 6.0}


def rows(*, quick: bool, cases: Sequence[str] = CASES) -> list[Row]:
    """Measure plans of a dataset on every executor, and an estimate; each in a process of its own."""
    items = int(float(os.environ.get("LARGE_ITEMS", "1e8"))) if not quick else 40_000
    polls = int(float(os.environ.get("LARGE_POLLS", "1e8"))) if not quick else 20_000
    chosen = [case for case in CASES if case.startswith(tuple(cases))]
    found: list[Row] = []
    with _inputs() as folder:
        executors = [on for on in _MOST_GB if f"plan-{on}" in chosen]
        if executors:
            found += _plan_rows(folder, items, executors, quick=quick)
        if "nodes" in chosen:
            found += _node_rows(_items(folder, items, quick=quick), quick=quick)
        if "estimate" in chosen:
            found += _estimate_rows(folder, polls)
    return found


@contextmanager
def _inputs() -> Iterator[Path]:
    """Yield the folder of the inputs: a kept one if ``LARGE_FOLDER`` is set, else one that is removed."""
    kept = os.environ.get("LARGE_FOLDER")
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _items(folder: Path, items: int, *, quick: bool) -> Path:
    return _write_items(folder / f"items-{items}", items, _PART if not quick else items // 4)


def _plan_rows(folder: Path, items: int, executors: Sequence[str], *, quick: bool) -> list[Row]:
    few = min(items, 10_000_000)
    one = _write_items(folder / f"one-{few}", few, few) / "part-0000.parquet"
    dataset = _items(folder, items, quick=quick)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        alone = _afresh("plan", str(one), "-o", f"{out}/alone.parquet")
        yardstick = alone.seconds / few
        found = [Row(f"plan of one file of {few:.0e} items, per item", 1e9 * yardstick, "ns", ratio=1.0)]
        for on in executors:
            target = Path(out, on)
            with _memory_of_all() as peak:
                done = _afresh("plan", str(dataset), "--on", on, "-o", str(target), *_COLUMNS)
            memory = max(peak[0], done.peak_bytes) / 1e9
            missing = items - sum(pq.read_metadata(part).num_rows for part in target.glob("*.parquet"))
            cost, limit = done.seconds / items, None if quick else _GROWTH
            name = f"{items:.0e} items from files, on {on}"
            found += [
                Row(f"{name}, per item", 1e9 * cost, "ns", ratio=cost / yardstick, at_most=limit),
                Row(f"{name}, peak memory", memory, "GB", at_most=_MOST_GB[on]),
                Row(f"{name}, rows missing", float(missing), "", at_most=0.0),
            ]
    return found


_COLUMNS = ("--columns", "item,frequency")


def _afresh(command: str, *arguments: str) -> Run:
    budget = ("--budget", "0.05/item/d") if command == "plan" else ()
    return run([sys.executable, "-m", "afresh", command, *arguments, *budget])


def _node_rows(items: Path, *, quick: bool) -> list[Row]:
    """Compare a plan of the items on two Ray nodes of one core each with the same on one, from reading to the
    last written part, without the time that Ray takes to start; the median of three."""
    times = {nodes: _median_plan(items, nodes) for nodes in (1, 2)}
    ratio = times[2] / times[1]
    return [
        Row("a plan on one Ray node with one core", times[1], "s", ratio=1.0),
        Row(
            "the same on two nodes with one core each",
            times[2],
            "s",
            ratio=ratio,
            at_most=None if quick else _TWO_NODES,
        ),
    ]


def _median_plan(items: Path, nodes: int) -> float:
    from ray.cluster_utils import Cluster

    from afresh.allocation.large.plan_search import find_plan
    from afresh.cli.planning.datasets.item_parts import PartPlan, write_part
    from afresh.cli.planning.datasets.plan_dataset import DatasetRun, merge_histograms
    from afresh.cli.planning.datasets.ray_executor import RayExecutor
    from afresh.cli.planning.plan_columns import choose_columns
    from afresh.tables.dataset import find_parts

    os.environ["RAY_AUTH_MODE"] = "disabled"
    node = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, head_node_args=node)
    try:
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
        times = []
        with RayExecutor(cluster.address) as executor, tempfile.TemporaryDirectory(dir=items.parent) as out:
            parts = find_parts(str(items))
            kinds = choose_columns("item,frequency")
            for turn in range(4):
                start = time.perf_counter()
                passes = DatasetRun(executor, parts)
                surveys = passes.survey()
                budget = 0.05 * sum(survey.rows for survey in surveys)
                found = find_plan(passes, budget, merge_histograms([survey.histogram for survey in surveys]))
                targets = [f"{out}/{turn}-{own.part.name}" for own in passes.parts]
                plans = [
                    PartPlan(own, target, found.cutoff, found.scale, kinds)
                    for own, target in zip(passes.parts, targets, strict=True)
                ]
                passes.run("writing", write_part, plans)
                if turn:  # in the first one the workers start and load their modules
                    times.append(time.perf_counter() - start)
        return statistics.median(times)
    finally:
        cluster.shutdown()


def _estimate_rows(folder: Path, polls: int) -> list[Row]:
    log, items = _write_polls(folder / f"polls-{polls}", polls)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        with _memory_of_all() as peak:
            done = _afresh("estimate", str(log), "--on", "local", "-o", f"{out}/rates")
        found = sum(pq.read_metadata(part).num_rows for part in Path(out, "rates").glob("*.parquet"))
    return [
        Row(f"estimate of {polls:.0e} polls from files", polls / done.seconds, "polls/s"),
        Row("its peak memory", max(peak[0], done.peak_bytes) / 1e9, "GB", at_most=4.0),
        Row("items missing from the rates", float(items - found), "", at_most=0.0),
    ]


def _write_items(folder: Path, items: int, part: int) -> Path:
    """Write items in parts of this size, unless they are there; return ``folder``."""
    if folder.exists():
        return folder
    unfinished = folder.with_suffix(".new")
    unfinished.mkdir()
    schema = pa.schema([("item", pa.int64()), ("rate", pa.float32()), ("weight", pa.float32())])
    for number, start in enumerate(range(0, items, part)):
        size = min(part, items - start)
        rates, weights = make_items(size, seed=number)
        table = pa.table([pa.array(np.arange(start, start + size)), rates, weights], schema=schema)
        pq.write_table(table, unfinished / f"part-{number:04}.parquet", row_group_size=1 << 20)
    return unfinished.rename(folder)


def _write_polls(folder: Path, polls: int) -> tuple[Path, int]:
    """Write a log in the order of time, round by round over all items, unless it is there; return a tuple
    (folder, number of items)."""
    items = polls // _POLLS_PER_ITEM
    if folder.exists():
        return folder, items
    unfinished = folder.with_suffix(".new")
    unfinished.mkdir()
    rng = np.random.default_rng(0)
    rate = rng.gamma(0.4, 0.5, items)
    now = np.full(items, 1.6e9)
    for number in range(_POLLS_PER_ITEM):
        days = rng.standard_exponential(items) * 5
        now += 86400 * days
        table = {
            "item": np.arange(items),
            "time": now,
            "changed": rng.random(items) < -np.expm1(-rate * days),
        }
        pq.write_table(pa.table(table), unfinished / f"part-{number:04}.parquet", row_group_size=1 << 20)
    return unfinished.rename(folder), items


@contextmanager
def _memory_of_all() -> Iterator[list[float]]:
    """Yield a list whose one number is the peak memory of all descendants of this process together."""
    peak, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.25):
            peak[0] = max(peak[0], _memory_of_descendants())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _memory_of_descendants() -> float:
    """Return the sum of the proportional set sizes of the processes below this one, in bytes."""
    parents = dict(_parents(Path("/proc").glob("[0-9]*")))
    below = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(_proportional_size(process) for process in below - {os.getpid()})


def _parents(folders: Iterator[Path] | Sequence[Path]) -> Iterator[tuple[int, int]]:
    for folder in folders:
        try:
            yield int(folder.name), int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue  # it has ended


def _proportional_size(process: int) -> float:
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024.0 * float(line.split()[1])
    except (OSError, ValueError):
        pass  # it has ended
    return 0.0
