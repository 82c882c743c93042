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
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.cluster.ray_cluster import ray_environment

from bench.descendants import Work, watching_descendants
from bench.items import make_items
from bench.process import run
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
    with ray_environment(), _inputs() as folder:
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
        alone = _afresh("plan", str(one), "-o", f"{out}/alone.parquet", *_COLUMNS)
        found = _time_rows(f"plan of one file of {few:.0e} items", few, alone)
        for on in executors:
            target = Path(out, on)
            done = _afresh("plan", str(dataset), "--on", on, "-o", str(target), *_COLUMNS)
            missing = items - sum(pq.read_metadata(part).num_rows for part in target.glob("*.parquet"))
            name = f"{items:.0e} items from files, on {on}"
            cost = [row.measured for row in found[:2]]
            found += [
                *_time_rows(name, items, done, cost, limit=None if quick else _GROWTH),
                Row(f"{name}, peak memory", done.peak_bytes / 1e9, "GB", at_most=_MOST_GB[on]),
                Row(f"{name}, rows missing", float(missing), "", at_most=0.0),
            ]
    return found


def _time_rows(
    name: str, items: int, done: Work, yardstick: Sequence[float] = (), limit: float | None = None
) -> list[Row]:
    """Return the time and the processor time per item. The processor time is judged: the parts of a dataset
    are read by several threads, and other programs on the machine change it less."""
    times = [1e9 * seconds / items for seconds in (done.seconds, done.processor_s)]
    ratios = [own / one for own, one in zip(times, yardstick or times, strict=True)]
    return [
        Row(f"{name}, time per item", times[0], "ns", ratio=ratios[0]),
        Row(f"{name}, processor time per item", times[1], "ns", ratio=ratios[1], at_most=limit),
    ]


_COLUMNS = ("--columns", "item,frequency")


def _afresh(command: str, *arguments: str) -> Work:
    """Run a command, and return what it and all processes that it starts take together."""
    budget = ("--budget", "0.05/item/d") if command == "plan" else ()
    with watching_descendants() as seen:
        done = run([sys.executable, "-m", "afresh", command, *arguments, *budget])
    return Work(
        done.seconds, max(seen.processor_s, done.processor_s), max(seen.peak_bytes, float(done.peak_bytes))
    )


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
        done = _afresh("estimate", str(log), "--on", "local", "-o", f"{out}/rates")
        found = sum(pq.read_metadata(part).num_rows for part in Path(out, "rates").glob("*.parquet"))
    return [
        Row(f"estimate of {polls:.0e} polls from files", polls / done.seconds, "polls/s"),
        Row("its processor time per poll", 1e9 * done.processor_s / polls, "ns"),
        Row("its peak memory", done.peak_bytes / 1e9, "GB", at_most=4.0),
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
