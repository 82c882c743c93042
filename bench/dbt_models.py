"""Mean age of dbt models: what ``afresh due --dbt`` selects, against all models and models in turn.

The real dbt builds a project of thirteen models over four tables that are written at random. Time is
compressed: an invocation takes the wall time that it takes, and the idle time between invocations is skipped.
Each policy has the same wall time of whole invocations, a share of the time. ``everything`` builds all models
whenever the last build is paid off. ``in turn`` builds the next models in the order of their dependencies, as
many as one of the calls of afresh may take. What is true of the ages is worked out from the times of writes
and builds, not from what a policy sees. The tool comes from ``make interop``.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.interop.dbt.shop import TABLES, Shop
from tests.interop.environments import environment
from tests.sources.polling import SetClock
from tests.sources.recorded_dbt import shift_times

from afresh.engine.app import make_engine
from afresh.engine.settings.parsing import parse_settings
from afresh.sources.views.dbt_artifacts import MANIFEST, RUN_RESULTS, DbtProject, read_project, read_run
from bench.rows import Row

SHARE = 1 / 60  # a minute of dbt an hour
CALL_S = 60.0  # how often each policy may start an invocation
RATES = {"orders": 1 / 150, "events": 1 / 1800, "customers": 1 / 600, "prices": 1 / 400}
SETTINGS = """
[budget]
seconds = "1m/h"
requests = "10/s"
[[source]]
name = "models"
kind = "view"
dbt = "{folder}/target"
url = "duckdb:{folder}/shop.duckdb"
"""
# One process, so that Python and dbt start once, as in an orchestrator.
SERVER = """
import json, sys
from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.cli.main import dbtRunner
for line in sys.stdin:
    found = dbtRunner().invoke(json.loads(line))
    DuckDBConnectionManager.close_all_connections()
    print("done", found.success, flush=True)
"""


@dataclass
class World:
    """The project in virtual time: writes come at ``writes`` (time, table), builds take what they take."""

    shop: Shop
    server: subprocess.Popen[str]
    writes: Sequence[tuple[float, str]]
    project: DbtProject
    content: dict[str, dict[str, float]] = field(default_factory=dict)
    history: list[tuple[float, str, dict[str, float]]] = field(default_factory=list)
    spent_s: float = 0.0
    written: int = 0

    def advance(self, until_s: float) -> None:
        """Write what is written until then."""
        due = [table for time_s, table in self.writes[self.written :] if time_s <= until_s]
        self.written += len(due)
        for table in dict.fromkeys(due):  # two writes without a reading between them are like one
            self.shop.write(table)

    def invoke(self, models: Sequence[str] | None, start_s: float) -> float:
        """Build models, by default all, from ``start_s`` on; return how many seconds that took."""
        began_s = time.perf_counter()
        words = ["--quiet", "build", *(["--select", *models] if models is not None else [])]
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(words) + "\n")
        self.server.stdin.flush()
        while not (line := self.server.stdout.readline()).startswith("done"):
            assert line, "dbt has ended"
        seconds = time.perf_counter() - began_s
        self.spent_s += seconds
        for model in self.in_order(self.project.models if models is None else models):
            self.content[model] = self._contents(model, start_s)
            self.history.append((start_s + seconds, model, self.content[model]))
        return seconds

    def in_order(self, models: Sequence[str]) -> list[str]:
        """The models whose builds write rows, those that others are made from first."""
        wanted, found = set(models), dict[str, None]()

        def visit(key: str) -> None:
            for below in self.project.nodes[key].below:
                visit(below)
            if key in wanted and self.project.nodes[key].is_stored:
                found[key] = None

        for model in models:
            visit(model)
        return list(found)

    def _contents(self, key: str, start_s: float) -> dict[str, float]:
        """Until when a model has the writes of each raw table, if it is built at ``start_s``."""
        found: dict[str, float] = {}
        for below in self.project.nodes[key].below:
            node = self.project.nodes[below]
            if node.resource == "source":
                parts = {below: start_s}
            elif node.is_stored:
                parts = self.content.get(below, {})
            else:
                parts = self._contents(below, start_s)
            for source, time_s in parts.items():
                found[source] = min(found.get(source, time_s), time_s)
        return found

    def mean_age_s(self, until_s: float) -> float:
        """The mean age of all models, sampled every second."""
        times = {table: np.array([at for at, name in self.writes if name == table]) for table in TABLES}
        samples, total = np.arange(0.0, until_s), 0.0
        for model in self.project.models:
            mine = [(at, parts) for at, name, parts in self.history if name == model]
            starts = np.array([at for at, _ in mine])
            current = np.maximum(np.searchsorted(starts, samples, side="right") - 1, 0)
            age = np.zeros(samples.size)
            for source in mine[0][1]:
                stamps = np.array([parts[source] for _, parts in mine])[current]
                own = np.append(times[source.partition(".")[2]], np.inf)
                lacking = own[np.searchsorted(own, stamps, side="right")]
                age = np.maximum(age, np.where(lacking <= samples, samples - lacking, 0.0))
            total += float(age.mean())
        return total / len(self.project.models)


class Everything:
    """Builds all models as soon as the last build is paid off."""

    def __init__(self, world: World) -> None:
        self.world, self.paid_s = world, 0.0

    def choose(self, now_s: float) -> Sequence[str]:
        return self.world.project.models if now_s >= self.paid_s else ()

    def learn(self, start_s: float, seconds: float) -> None:
        self.paid_s = start_s + seconds / SHARE


class InTurn(Everything):
    """Builds the next models in the order of their dependencies, as many as one call may take."""

    def __init__(self, world: World, costs: Mapping[str, float], overhead_s: float) -> None:
        super().__init__(world)
        self._order, self._costs, self._overhead_s = world.in_order(world.project.models), costs, overhead_s
        self._next = 0

    def choose(self, now_s: float) -> Sequence[str]:
        if now_s < self.paid_s:
            return ()
        chosen: list[str] = []
        left_s = CALL_S * SHARE - self._overhead_s
        while len(chosen) < len(self._order):
            model = self._order[self._next % len(self._order)]
            left_s -= self._costs[model]
            if chosen and left_s < 0:
                break
            chosen.append(model)
            self._next += 1
        return chosen


class Due:
    """Builds what ``afresh due --dbt --for`` selects, and lets it learn from each build."""

    def __init__(self, world: World) -> None:
        self.world, self._clock = world, SetClock(time.time())
        self._base_s, self._target = self._clock.time_s, world.shop.folder / "target"
        text = SETTINGS.format(folder=world.shop.folder)
        self.engine = make_engine(parse_settings(text), world.shop.folder, clock=self._clock)
        self.engine.add(world.project.models, source="models")
        asyncio.run(self.engine.dbt.find_due(CALL_S))  # the reading before the first build
        self.learn(0.0, 0.0)

    def choose(self, now_s: float) -> Sequence[str]:
        self._clock.time_s = self._base_s + now_s
        return asyncio.run(self.engine.dbt.find_due(CALL_S)).models

    def learn(self, start_s: float, seconds: float) -> None:
        """Learn from the last run, with its times moved to those of the compressed time."""
        self._clock.time_s = self._base_s + start_s + seconds
        copy = self.world.shop.folder / "shifted"
        copy.mkdir(exist_ok=True)
        shutil.copy(self._target / MANIFEST, copy)
        run = read_run(self._target, self.world.project)
        assert run is not None
        text = (self._target / RUN_RESULTS).read_text()
        (copy / RUN_RESULTS).write_text(shift_times(text, self._clock.time_s - run.ended_s))
        self.engine.dbt.learn(target=copy, seconds=seconds)


def run_policy(world: World, policy: Everything | Due, horizon_s: float) -> None:
    """Let a policy choose models at each call, until the end of the horizon."""
    now_s = 0.0
    while now_s < horizon_s:
        world.advance(now_s)
        seconds = 0.0
        if models := policy.choose(now_s):
            seconds = world.invoke(models, now_s)
            policy.learn(now_s, seconds)
        now_s += max(seconds, CALL_S)


def rows(*, quick: bool = False) -> list[Row]:
    """The mean ages under each policy, at equal wall time of whole invocations."""
    programs = environment("dbt")
    horizon_s = 120.0 if quick else 3600.0
    size = {"orders": 20_000, "events": 50_000} if quick else {"orders": 3_000_000, "events": 400_000}
    rng = np.random.default_rng(3)
    writes = sorted(
        (float(at), table)
        for table, rate in RATES.items()
        for at in np.cumsum(rng.exponential(1 / rate, int(4 * rate * horizon_s) + 10))
        if at < horizon_s
    )
    ages, spent = {}, {}
    for name in ("everything", "in turn", "afresh due --dbt"):
        with built_world(programs, writes, size) as world:
            policy = _policy(name, world)
            world.spent_s = 0.0
            run_policy(world, policy, horizon_s)
            ages[name], spent[name] = world.mean_age_s(horizon_s), world.spent_s / horizon_s
            if isinstance(policy, Due):
                policy.engine.close()
    return _rows(ages, spent, quick=quick)


def _policy(name: str, world: World) -> Everything | Due:
    if name == "afresh due --dbt":
        return Due(world)
    run = read_run(world.shop.folder / "target", world.project)
    assert run is not None
    costs = {build.key: build.seconds for build in run.builds}
    return InTurn(world, costs, run.overhead_s) if name == "in turn" else Everything(world)


def _rows(ages: Mapping[str, float], spent: Mapping[str, float], *, quick: bool) -> list[Row]:
    own = ages["afresh due --dbt"]
    found = [Row(f"mean age of the models, {name}", age, "s") for name, age in ages.items()]
    limit = None if quick else 1.0  # in a few calls nothing is learned
    for name in ("everything", "in turn"):
        ratio = own / ages[name] if ages[name] else 0.0
        found.append(Row(f"mean age against {name}", own, "s", ratio=ratio, at_most=limit))
    most = max(spent["everything"], spent["in turn"])
    for name, share in spent.items():
        found.append(Row(f"wall time of dbt, {name}", 3600 * share, "s/h"))
    ratio = spent["afresh due --dbt"] / most
    found.append(
        Row("wall time of dbt against the others", ratio, "", ratio=ratio, at_most=None if quick else 1.05)
    )
    return found


@contextmanager
def built_world(
    programs: Path, writes: Sequence[tuple[float, str]], size: Mapping[str, int]
) -> Iterator[World]:
    """The project with its first build, and a process that runs dbt."""
    with tempfile.TemporaryDirectory() as name, running_dbt(Shop(Path(name), programs, **size)) as made:
        shop, server = made
        shop.dbt("parse")
        world = World(shop, server, writes, read_project(shop.folder / "target"))
        world.invoke(None, 0.0)
        yield world


@contextmanager
def running_dbt(shop: Shop) -> Iterator[tuple[Shop, subprocess.Popen[str]]]:
    """A process that runs dbt again and again."""
    server = subprocess.Popen(
        [shop.programs / "python", "-c", SERVER],
        cwd=shop.folder,
        env=shop.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield shop, server
    finally:
        server.terminate()
        server.communicate()
