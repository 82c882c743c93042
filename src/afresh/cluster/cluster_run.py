"""The run of a cluster: starts coordinator and shards in Ray, looks after them, and passes on new items.

The process that runs this is the head of the cluster. If it ends, Ray ends the actors, and the next run goes
on with what the stores contain.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from afresh.cluster.actors import (
    SLACK_S,
    CoordinatorActor,
    ShardActor,
    coordinator_name,
    count_hosts,
    host_ids,
    shard_name,
)
from afresh.cluster.coordination import ClusterBudget
from afresh.cluster.coordinator import ENDED
from afresh.cluster.host_hashing import large_hosts
from afresh.cluster.layout import (
    ClusterLayout,
    ClusterView,
    LastSeen,
    read_layout,
    save_last_seen,
    save_layout,
)
from afresh.cluster.other_run import refuse_second_run
from afresh.cluster.ray_session import (
    ClusterError,
    RayNode,
    ask_actor,
    check_head,
    check_versions,
    find_actor,
    living_nodes,
    on_node,
    read_versions,
)
from afresh.cluster.shard_settings import ShardSpec, check_settings, shard_of
from afresh.engine.engine import Engine
from afresh.engine.logs import log_event
from afresh.engine.runner.engine_run import RunProgress
from afresh.sources.secrets import Resolver
from afresh.stores.moving import AT_ONCE, drop_moved, read_records
from afresh.values.errors import AfreshError
from afresh.values.formatting import format_count
from afresh.version import __version__

_NEW_AT_ONCE = 1000
_START_S = 120.0


@dataclass(frozen=True, slots=True)
class HostMove:
    """A host whose items belong to another shard. ``source`` is the shard that has them, or −1 for the
    project's own store."""

    host: str
    items: int
    source: int
    target: int


@dataclass(slots=True)
class RunningShard:
    """A shard as the run of the cluster sees it. ``handle`` is None while it waits for its node."""

    shard: int
    host: str
    handle: Any = None
    check: Any = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ClusterProgress:
    """What the run knows: the coordinator's view, and which shards have a problem."""

    view: ClusterView | None
    problems: dict[int, str] = field(default_factory=dict)


class ClusterRun:
    """Runs the shards of a project. Call ``start``, then ``step`` every second or two, and ``stop``."""

    def __init__(self, ray: ModuleType, engine: Engine, spec: ShardSpec, secrets: Resolver) -> None:
        """``engine`` is that of the project's own store; ``spec`` names the shards, its own is ignored."""
        self._ray, self._engine, self._spec, self._secrets = ray, engine, spec, secrets
        settings = engine.settings
        check_settings(settings)
        self._budget = ClusterBudget(
            settings.budget.requests,
            settings.budget.burst_requests,
            len(spec.shards),
            settings.cluster.share,
            SLACK_S,
        )
        self._is_on_nodes = settings.cluster.store.startswith("sqlite:")
        self._is_polling, self._is_seen = True, False
        self.address: str = ray.get_runtime_context().gcs_address
        self.shards: dict[int, RunningShard] = {}
        self._coordinator: Any = None
        self._owner = shard_of(spec.shards)

    # Starting.

    def start(self) -> None:
        """Start the coordinator and the shards. Items that belong to another shard are moved first."""
        self._prepare()
        self._save_view(ClusterView(0.0, 0.0, ()), {})
        self._start_coordinator()
        for running in self.shards.values():
            if running.handle is not None:
                self._ask(running, "begin")

    def rebalance(self, *, dry_run: bool) -> list[HostMove]:
        """Move the items that belong to another shard, without polling; return what moved or, with
        ``dry_run``, what would move."""
        self._is_polling = False
        try:
            return self._find_moves_of_layout() if dry_run else self._prepare()
        finally:
            for running in self.shards.values():
                self._stop_shard(running)

    def _find_moves_of_layout(self) -> list[HostMove]:
        nodes, layout = self._check_nodes(), read_layout(self._engine.store)
        for shard in layout.shards:
            self.shards[shard] = RunningShard(shard, layout.node_of(shard))
            self._start_shard(self.shards[shard], nodes)
        return self.find_moves()

    def _prepare(self) -> list[HostMove]:
        """Start the processes of the shards, and let items move to where they belong."""
        nodes, before = self._check_nodes(), read_layout(self._engine.store)
        layout = self._place(before, nodes)
        leaving = [shard for shard in before.shards if shard not in layout.shards]
        # Until all items have moved, the next run has to know the shards that leave, too.
        hosts = (*layout.nodes, *(before.node_of(shard) for shard in leaving))
        union = ClusterLayout((*layout.shards, *leaving), hosts)
        save_layout(self._engine.store, union)
        for shard in union.shards:
            self.shards[shard] = RunningShard(shard, union.node_of(shard))
            self._start_shard(self.shards[shard], nodes)
        moves = self._settle(leaving)
        save_layout(self._engine.store, layout)
        return moves

    def _check_nodes(self) -> list[RayNode]:
        """Return the nodes of the cluster. Raise ``ClusterError`` if the project runs here already, or if
        a node has another version of afresh."""
        if find_actor(self._ray, coordinator_name(self._spec.project)) is not None:
            raise ClusterError("a run of this project goes on in this cluster already: stop it first")
        refuse_second_run(self._engine.store, self._engine.clock)
        if self._is_polling:  # so that another run is refused from now on
            self._save_view(ClusterView(0.0, 0.0, ()), {})
        nodes = living_nodes(self._ray)
        check_versions(read_versions(self._ray, nodes), __version__)
        return nodes

    def _place(self, before: ClusterLayout, nodes: Sequence[RayNode]) -> ClusterLayout:
        """Return the layout of the wanted shards. A store in a file stays on its node; new ones are placed
        where the fewest are."""
        shards = tuple(sorted(self._spec.shards))
        if not self._is_on_nodes:
            return ClusterLayout(shards, ("",) * len(shards))
        placed: list[str] = []
        for shard in shards:
            if shard in before.shards and before.node_of(shard):
                placed.append(before.node_of(shard))
                continue
            placed.append(min((node.host for node in nodes), key=placed.count))
        return ClusterLayout(shards, tuple(placed))

    def _start_shard(self, running: RunningShard, nodes: Sequence[RayNode]) -> None:
        """Start the process of a shard, on its node if it has one. If that node is not there, it waits."""
        strategy: Any = "SPREAD"
        restarts = -1
        if running.host:
            there = [node for node in nodes if node.host == running.host]
            if not there:
                self._set_problem(running, f"waits for node {running.host}, which has its store")
                return
            strategy, restarts = on_node(self._ray, there[running.shard % len(there)].id), 3
        remote = self._ray.remote(ShardActor).options(
            name=shard_name(self._spec.project, running.shard),
            max_restarts=restarts,
            max_concurrency=4,
            num_cpus=0,
            scheduling_strategy=strategy,
        )
        spec = replace(self._spec, shard=running.shard)
        running.handle = remote.remote(spec, __version__, self._secrets, self._is_polling)
        self._set_problem(running, "")

    def _start_coordinator(self) -> None:
        here = self._ray.get_runtime_context().get_node_id()  # it uses the project's store
        remote = self._ray.remote(CoordinatorActor).options(
            name=coordinator_name(self._spec.project),
            max_restarts=-1,
            num_cpus=0,
            scheduling_strategy=on_node(self._ray, here),
        )
        self._coordinator = remote.remote(self._spec, __version__, self._budget)
        ask_actor(self._ray, self._coordinator.view.remote(), "the coordinator", _START_S)

    def _save_view(self, view: ClusterView, problems: Mapping[int, str]) -> None:
        """Save what the coordinator sees, and which shards do not poll, for commands that read."""
        seen = LastSeen(self.address, self._engine.clock.now_s(), view, tuple(problems.items()))
        save_last_seen(self._engine.store, seen)
        self._is_seen = True

    def _ask(self, running: RunningShard, method: str, *given: Any, timeout_s: float = _START_S) -> Any:
        if running.handle is None:
            raise ClusterError(f"shard {running.shard} {running.problem}")
        call = getattr(running.handle, method).remote(*given)
        return ask_actor(self._ray, call, f"shard {running.shard}", timeout_s)

    # Where items belong.

    def _settle(self, leaving: Sequence[int]) -> list[HostMove]:
        """Move the items that belong to another shard, unless all shards have begun to poll already."""
        waiting = [running for running in self.shards.values() if running.handle is None]
        for running in self.shards.values():
            problem = self._ask(running, "problem") if running.handle is not None else ""
            if problem:
                raise ClusterError(f"shard {running.shard} cannot start: {problem}")
        started = [running for running in self.shards.values() if running.handle is not None]
        if not leaving and all(self._ask(running, "is_settled") for running in started):
            return []
        if waiting:
            raise ClusterError(f"items have to move, but shard {waiting[0].shard} {waiting[0].problem}")
        moves = self.find_moves()
        for move in moves:
            self._move(move)
        for shard in leaving:
            self._stop_shard(self.shards.pop(shard))
        return moves

    def find_moves(self) -> list[HostMove]:
        """Return the hosts whose items are not in the shard where they belong; report hosts larger than a
        shard."""
        places = {-1: count_hosts(self._engine)}
        places |= {shard: self._ask(running, "hosts") for shard, running in self.shards.items()}
        sizes: dict[str, int] = {}
        moves = []
        for place, hosts in places.items():
            for host, items in hosts.items():
                sizes[host] = sizes.get(host, 0) + items
                target = self._owner(host)
                if target != place:
                    moves.append(HostMove(host, items, place, target))
        for host in large_hosts(sizes, len(self._spec.shards)):
            words = "a host is larger than a shard, and stays whole"
            log_event(logging.WARNING, words, host=host, items=sizes[host], shard=self._owner(host))
        return moves

    def _move(self, move: HostMove) -> None:
        target = self.shards[move.target]
        source = self.shards.get(move.source)
        ids = host_ids(self._engine, move.host) if source is None else self._ask(source, "ids", move.host)
        for begin in range(0, len(ids), AT_ONCE):
            some = ids[begin : begin + AT_ONCE]
            if source is None:
                self._ask(target, "write", read_records(self._engine.store, some))
                drop_moved(self._engine.store, some)
            else:
                self._ask(target, "write", self._ask(source, "read", some))
                self._ask(source, "remove", some)
        log_event(logging.INFO, "moved", host=move.host, items=len(ids), to=move.target)

    # While it runs.

    def step(self) -> ClusterProgress:
        """Look after the shards once, and pass new items on. Raise ``ClusterError`` if another coordinator
        has taken over, and ``HeadLostError`` if Ray has ended."""
        check_head(self.address)
        nodes = living_nodes(self._ray)
        for running in self.shards.values():
            self._look_after(running, nodes)
        self._pass_on_new_items()
        problems = {one.shard: one.problem for one in self.shards.values() if one.problem}
        view = self._view()
        if view is not None:
            self._save_view(view, problems)
        return ClusterProgress(view, problems)

    def _view(self) -> ClusterView | None:
        try:
            if ask_actor(self._ray, self._coordinator.is_replaced.remote(), "the coordinator", 5.0):
                raise CoordinatorLostError(ENDED)
            view = ask_actor(self._ray, self._coordinator.view.remote(), "the coordinator", 5.0)
        except CoordinatorLostError:
            raise
        except ClusterError as error:  # Ray starts it again
            log_event(logging.WARNING, "the coordinator does not answer", problem=str(error))
            return None
        assert isinstance(view, ClusterView)
        return view

    def _look_after(self, running: RunningShard, nodes: Sequence[RayNode]) -> None:
        """Ask a shard how it is, without waiting for the answer; start it again on its node if it is lost."""
        if running.handle is None:
            self._start_shard(running, nodes)
            return
        if running.check is None:
            running.check = running.handle.problem.remote()
            return
        ready, _ = self._ray.wait([running.check], timeout=0)
        if not ready:
            return
        call, running.check = running.check, None
        try:
            self._set_problem(running, self._ray.get(call))
        except self._ray.exceptions.ActorUnavailableError:
            self._set_problem(running, "is being started again")
        except self._ray.exceptions.RayActorError as error:
            words = (str(error).strip().splitlines() or ["its process was lost"])[-1]
            self._set_problem(running, "is lost" if running.host else f"is lost: {words}")
            running.handle = None  # all attempts of Ray have failed, or its node is gone

    def _set_problem(self, running: RunningShard, problem: str) -> None:
        if problem != running.problem:
            running.problem = problem
            level = logging.WARNING if problem else logging.INFO
            log_event(level, problem or "works again", shard=running.shard)

    def _pass_on_new_items(self) -> None:
        """Move new items from the project's store, where commands and other shards put them, to their
        shards."""
        for host in list(count_hosts(self._engine)):
            running = self.shards[self._owner(host)]
            if running.handle is None or running.problem:
                continue
            ids = host_ids(self._engine, host)[:_NEW_AT_ONCE]
            try:
                self._ask(running, "write", read_records(self._engine.store, ids), timeout_s=30.0)
            except ClusterError as error:
                log_event(logging.WARNING, "new items have to wait", host=host, problem=str(error))
                continue
            drop_moved(self._engine.store, ids)

    # The end.

    def stop(self, timeout_s: float) -> RunProgress:
        """End the polls of all shards, wait until they are committed, and return the sum of their counts."""
        calls = {
            running.shard: running.handle.stop.remote()
            for running in self.shards.values()
            if running.handle is not None
        }
        found, ended = [], dict[int, int]()
        for shard, call in calls.items():
            try:
                found.append(ask_actor(self._ray, call, f"shard {shard}", timeout_s))
                ended[shard] = self._ask(self.shards[shard], "ended_run")
            except ClusterError as error:
                log_event(logging.WARNING, "stopped before everything was saved", problem=str(error))
        self._release({shard: run for shard, run in ended.items() if run})
        for running in self.shards.values():
            self._stop_shard(running)
        if self._is_seen:  # else it is another run that is seen
            save_last_seen(self._engine.store, None)
        if calls:
            log_event(logging.INFO, "stopped", shards=format_count(len(calls), "shard"))
        done = [each for each in found if each is not None]
        names = ("polls", "changes", "failures", "requests", "audits")
        return RunProgress(**{name: sum(getattr(each, name) for each in done) for name in names})

    def _release(self, ended: Mapping[int, int]) -> None:
        """Tell the coordinator which runs of shards have ended, so that the next runs get their shares at
        once. If it cannot be told, they wait until these must have ended."""
        if not ended or self._coordinator is None:
            return
        try:
            ask_actor(self._ray, self._coordinator.release.remote(ended), "the coordinator", 10.0)
        except AfreshError as error:
            log_event(logging.DEBUG, "the shares could not be released", problem=str(error))

    def _stop_shard(self, running: RunningShard) -> None:
        if running.handle is not None:
            try:
                self._ask(running, "close", timeout_s=10.0)
            except ClusterError as error:
                log_event(logging.DEBUG, "a shard did not close its store", problem=str(error))
            self._ray.kill(running.handle)
            running.handle = None


class CoordinatorLostError(ClusterError):
    """Another coordinator has taken over the project."""
