"""The two kinds of processes of a cluster: the shards, and the coordinator. Ray starts and restarts them.

They are plain classes, so that this module does not import Ray. Their methods may raise ``AfreshError``,
which reaches the caller.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from afresh.cluster.coordination import ClusterBudget, ShardReport, ShareAnswer
from afresh.cluster.coordinator import Coordinator
from afresh.cluster.layout import ClusterView
from afresh.cluster.ray_session import answer_of, find_actor, import_ray
from afresh.cluster.routed_items import RoutedItems, unpack_items
from afresh.cluster.shard_reporter import CoordinatorLink, ShardReporter
from afresh.cluster.shard_settings import ShardSpec, check_settings, shard_of, shard_settings
from afresh.engine.app import make_engine, open_settings_store
from afresh.engine.engine import Engine
from afresh.engine.logs import LOGGER, PlainLines
from afresh.engine.ratelimit.worker_name import this_worker
from afresh.engine.runner.engine_run import RunProgress
from afresh.sources.secrets import Resolver
from afresh.stores.item_record import ItemRecord
from afresh.stores.moving import drop_moved, read_records, write_records
from afresh.values.clock import SystemClock
from afresh.values.errors import AfreshError, UsageError
from afresh.version import __version__

SLACK_S = 2.0
"""How much longer than its duration a share counts: for clocks that run at different speeds."""

SETTLED = "cluster.settled"
_REBALANCE = 2.0  # rebalancings per duration of a report


def shard_name(project: str, shard: int) -> str:
    return f"{project}-shard-{shard}"


def coordinator_name(project: str) -> str:
    return f"{project}-coordinator"


def check_own_version(version: str) -> None:
    """Raise ``UsageError`` if this process has another version of afresh than the one that started it."""
    if version != __version__:
        raise UsageError(f"this node has afresh {__version__}, and the cluster was started with {version}")


class ShardActor:
    """One shard: an engine with its store. When it is made, it begins to poll if ``begin`` was called once
    since the shards of the project last changed; else it waits for this, because items may have to move.
    Without ``is_polling`` it never polls."""

    def __init__(self, spec: ShardSpec, version: str, secrets: Resolver, is_polling: bool = True) -> None:
        self._spec, self._engine, self._problem = spec, None, ""
        self._reporter: ShardReporter | None = None
        self._ended_run = 0
        _log_to_stderr()
        try:
            check_own_version(version)
            self._engine = self._open(secrets)
            if is_polling and self.is_settled():
                self._start(self._engine)
        except AfreshError as error:  # Ray would start this process again and again
            self._problem = str(error)

    def _open(self, secrets: Resolver) -> Engine:
        spec, settings = self._spec, shard_settings(self._spec)
        if settings.store.url.startswith("sqlite:"):
            path = Path(spec.folder) / settings.store.url.removeprefix("sqlite:").removeprefix("//")
            path.parent.mkdir(parents=True, exist_ok=True)
        store: Any = open_settings_store(settings, Path(spec.folder))
        owner = shard_of(spec.shards)
        store.items = RoutedItems(store, lambda group: owner(group) == spec.shard)
        return make_engine(settings, spec.folder, store=store, secrets=secrets)

    def _start(self, engine: Engine) -> None:
        every_s = self._spec.parse().cluster.report
        link = _RayLink(coordinator_name(self._spec.project), every_s)
        reporter = ShardReporter(
            self._spec.shard, engine.store, CoordinatorLink(link.report, link.deliver), every_s
        )
        self._reporter = engine.beside = reporter
        engine.start()

    # What the run of the cluster calls.

    def is_settled(self) -> bool:
        """Return whether all items of this shard are here, and no others."""
        return self._opened.store.state.get(SETTLED) == json.dumps(self._spec.shards).encode()

    def begin(self) -> None:
        """Begin to poll, because all items are where they belong."""
        engine = self._opened
        engine.store.state.set({SETTLED: json.dumps(self._spec.shards).encode()})
        if self._reporter is None:
            self._start(engine)

    def problem(self) -> str:
        """Return why this shard does not run; empty if it does, or if it has not begun."""
        if self._reporter is not None and self._reporter.is_replaced:
            return "another process runs this shard"
        if self._reporter is not None and not self._opened.is_running():
            return "its run has ended: the log of its process says why"
        return self._problem

    def stop(self) -> RunProgress | None:
        """End the polls, and return the progress of the run."""
        engine, reporter, self._reporter = self._engine, self._reporter, None
        if engine is None or self._problem:
            return None
        try:
            progress = engine.stop()
        except UsageError:  # it was not started
            return None
        self._ended_run = 0 if reporter is None else reporter.run_number
        return progress

    def ended_run(self) -> int:
        """Return the number that the coordinator gave to the run which ``stop`` ended; 0 if there is none."""
        return self._ended_run

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    # What is asked of its items.

    @property
    def _opened(self) -> Engine:
        if self._engine is None:
            raise UsageError(f"shard {self._spec.shard} cannot be used: {self._problem}")
        return self._engine

    def ask(self, question: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return ``question(engine, …)``; see ``shard_reader.py``."""
        return question(self._opened, *args, **kwargs)

    def hosts(self) -> dict[str, int]:
        return count_hosts(self._opened)

    # Items that move in and out.

    def ids(self, host: str) -> list[int]:
        return host_ids(self._opened, host)

    def read(self, ids: Sequence[int]) -> list[ItemRecord]:
        return read_records(self._opened.store, ids)

    def write(self, records: Sequence[ItemRecord]) -> int:
        return write_records(self._opened.store, records, self._opened.clock.now_s())

    def remove(self, ids: Sequence[int]) -> None:
        drop_moved(self._opened.store, ids)


def count_hosts(engine: Engine) -> dict[str, int]:
    """Return the number of items by host."""
    found: dict[str, int] = {}
    for count in engine.store.items.counts():
        found[count.group] = found.get(count.group, 0) + count.items
    return found


def host_ids(engine: Engine, host: str) -> list[int]:
    """Return the ids of all items of a host."""
    from afresh.values.items import ItemQuery

    found: list[int] = []
    cursor: str | None = None
    while True:
        page = engine.store.items.page(ItemQuery(group=host), 1000, cursor)
        found += [item.id for item in page.items]
        cursor = page.cursor
        if cursor is None:
            return found


class CoordinatorActor:
    """The coordinator. Its state, and the items that wait for their shards, are in the project's store."""

    def __init__(self, spec: ShardSpec, version: str, budget: ClusterBudget) -> None:
        _log_to_stderr()
        check_own_version(version)
        settings = spec.parse()
        check_settings(settings)
        clock = SystemClock()
        self._store = open_settings_store(settings, Path(spec.folder))
        self._clock = clock
        owner, every_s = this_worker(clock, clock.now_s()).name, settings.cluster.report / _REBALANCE
        self._coordinator = Coordinator(self._store, clock, budget, owner=owner, every_s=every_s)

    def report(self, report: ShardReport) -> ShareAnswer | None:
        return self._coordinator.report(report)

    def release(self, ended: Mapping[int, int]) -> None:
        self._coordinator.release(ended)

    def deliver(self, packed: bytes) -> bool:
        """Keep items of other shards in the project's store, from which the run of the cluster takes them."""
        self._store.items.add(unpack_items(packed), self._clock.now_s())
        return True

    def view(self) -> ClusterView:
        return self._coordinator.view()

    def is_replaced(self) -> bool:
        return self._coordinator.is_replaced


class _RayLink:
    """Reaches the coordinator by its name, also after Ray has started it again."""

    def __init__(self, name: str, every_s: float) -> None:
        self._name, self._timeout_s = name, max(2.0 * every_s, 5.0)
        self._handle: Any = None

    async def report(self, report: ShardReport) -> ShareAnswer | None:
        handle = await self._find()
        answer = None if handle is None else await answer_of(handle.report.remote(report), self._timeout_s)
        if answer is None:
            self._handle = None
        return answer if isinstance(answer, ShareAnswer) else None

    async def deliver(self, packed: bytes) -> bool | None:
        handle = await self._find()
        if handle is None:
            return None
        answer = await answer_of(handle.deliver.remote(packed), self._timeout_s)
        return None if answer is None else bool(answer)

    async def _find(self) -> Any:
        if self._handle is None:
            import asyncio

            self._handle = await asyncio.to_thread(find_actor, import_ray(), self._name)
        return self._handle


def _log_to_stderr() -> None:
    """Write the log of this process to its standard error, which Ray keeps in a file on its node."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.propagate = False
    LOGGER.setLevel(logging.INFO)
