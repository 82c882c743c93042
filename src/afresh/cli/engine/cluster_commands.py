"""``afresh cluster`` runs a project as many engines under one price, on Ray, and reads over all of them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from afresh.cli.engine import project
from afresh.cli.engine.dashboard_server import check_dashboard, make_server
from afresh.cli.interruption import INTERRUPTION
from afresh.cli.options import PrintJson, read_duration
from afresh.cli.summary import format_number, print_data, print_json, print_note, print_report
from afresh.values.clock import SystemClock
from afresh.values.errors import AfreshError, UsageError
from afresh.values.formatting import format_count, format_moment

if TYPE_CHECKING:
    from fastapi import FastAPI

    from afresh.cluster.cluster_project import ClusterProject
    from afresh.cluster.cluster_run import ClusterProgress, ClusterRun
    from afresh.cluster.shard_settings import ShardSpec
    from afresh.engine.engine import Engine
    from afresh.engine.project_interface import ClusterStatus
    from afresh.web.app import WebAccess

cluster = typer.Typer(no_args_is_help=True, help="Run many engines under one price, on Ray.")
Address = Annotated[
    str | None, Option(metavar="HOST:PORT", help="The Ray cluster; by default one on this machine.")
]
Shards = Annotated[
    int | None, Option(metavar="N", min=1, help="How many shards; by default as many as there are.")
]
_STEP_S, _LOG_EVERY_S = 1.0, 60.0


@cluster.callback()
def clusters() -> None:
    """Run many engines under one price, on Ray."""


@cluster.command("run")
def cluster_run(
    shards: Shards = None,
    address: Address = None,
    budget: Annotated[str | None, Option(metavar="100/s", help="All requests of all shards.")] = None,
    for_time: Annotated[str | None, Option("--for", metavar="10m", help="Stop after this time.")] = None,
    web: Annotated[bool, Option("--web", help="Serve the dashboard and the API too.")] = False,
    sets: project.SetOptions = None,
    log: Annotated[str, Option(metavar="plain|json|debug", help="How to log on standard error.")] = "plain",
    as_json: PrintJson = False,
) -> None:
    """Poll with all shards until stopped. Items move first, if the number of shards has changed."""
    from afresh.cluster.ray_session import ray_session
    from afresh.engine.settings.overrides import SettingWithOrigin

    for_s = read_duration("--for", for_time, float("inf"))
    more = {} if budget is None else {"budget.requests": SettingWithOrigin(budget, f"--budget {budget}")}
    if web:
        check_dashboard(sets, more)
    with project.open_project(sets, more) as engine:
        project.set_up_logs(log, logging.DEBUG if log == "debug" else logging.INFO)
        spec = _spec(engine, project.read_overrides(sets, more), shards)
        with ray_session(address) as ray:
            from afresh.cluster.cluster_run import ClusterRun

            run = ClusterRun(ray, engine, spec, read_secret)
            stop = threading.Event()
            with INTERRUPTION.stopping_by(stop.set, engine.settings.run.drain_timeout):
                _look_after(run, stop, for_s, partial(_dashboard, engine, spec) if web else nullcontext)
                progress = run.stop(engine.settings.run.drain_timeout)
    done = asdict(progress)
    if as_json:
        print_json({name: done[name] for name in ("polls", "changes", "failures", "requests", "audits")})
    INTERRUPTION.check()


def _look_after(
    run: ClusterRun, stop: threading.Event, for_s: float, beside: Callable[[], AbstractContextManager[object]]
) -> None:
    """Start the cluster, and look after it until it is stopped. If it cannot go on, end it in order.
    ``beside`` returns a context in which it is looked after."""
    from afresh.cluster.ray_session import HeadLostError, head_watch
    from afresh.engine.logs import log_event

    is_told = threading.Event()

    def tell(error: HeadLostError) -> None:
        if not is_told.is_set():
            is_told.set()
            log_event(logging.ERROR, str(error))

    with head_watch(run.address, tell):
        try:
            _step_until_stopped(run, stop, for_s, beside)
        except HeadLostError as error:  # nobody is left who could be stopped
            tell(error)  # at once, because Ray may end this process
            raise
        except AfreshError:
            run.stop(_STEP_S)
            raise


def _step_until_stopped(
    run: ClusterRun, stop: threading.Event, for_s: float, beside: Callable[[], AbstractContextManager[object]]
) -> None:
    """Start the cluster, and look after it every few seconds, until ``stop`` or for ``for_s`` seconds."""
    clock = SystemClock()
    run.start()
    until_s, log_s = clock.elapsed_s() + for_s, clock.elapsed_s()
    with beside():
        while not stop.wait(min(_STEP_S, max(until_s - clock.elapsed_s(), 0.0))):
            progress = run.step()
            if clock.elapsed_s() >= log_s:
                log_s = clock.elapsed_s() + _LOG_EVERY_S
                _log_progress(progress)
            if clock.elapsed_s() >= until_s:
                return


@contextmanager
def _dashboard(engine: Engine, spec: ShardSpec) -> Iterator[None]:
    """Serve the dashboard in a thread, over the stores of all shards."""
    from afresh.cluster.cluster_project import open_cluster
    from afresh.engine.logs import log_event

    with ExitStack() as stack:
        found = open_cluster(engine, spec, stack)
        server = stack.enter_context(make_server(engine.settings.web, partial(_cluster_app, found)))
        log_event(logging.INFO, "dashboard", address=server.address)
        yield


def _cluster_app(found: ClusterProject, access: WebAccess) -> FastAPI:
    from afresh.web.app import make_cluster_app

    return make_cluster_app(found, access)


@cluster.command("serve")
def cluster_serve(
    host: Annotated[
        str | None, Option(metavar="NAME", help="Address to listen on; default: only this machine.")
    ] = None,
    port: Annotated[int | None, Option(metavar="N", help="Port to listen on; 0: any free port.")] = None,
    sets: project.SetOptions = None,
) -> None:
    """Show the copies of all shards in a browser, and answer the API, until stopped."""
    given = {"web.host": host, "web.port": None if port is None else str(port)}
    more = {key: value for key, value in given.items() if value is not None}
    check_dashboard(sets, more)
    with _opened(sets, more) as (engine, found):
        server = make_server(engine.settings.web, partial(_cluster_app, found))
        with INTERRUPTION.stopping_by(server.stop):
            print_note(f"dashboard at {server.address} (Ctrl-C to stop)")
            server.run()
        INTERRUPTION.check()


def _log_progress(progress: ClusterProgress) -> None:
    from afresh.engine.logs import log_event

    if progress.view is not None:
        live = sum(shard.is_live for shard in progress.view.shards)
        items = sum(shard.items for shard in progress.view.shards)
        log_event(logging.INFO, "running", shards=live, items=items, price=progress.view.price)


@cluster.command("status")
def cluster_status(sets: project.SetOptions = None, as_json: PrintJson = False) -> None:
    """Show the freshness, budget and problems of all shards together, and the share of each."""
    from afresh.cli.engine.status_commands import status_rows

    with _opened(sets) as (engine, found):
        status, shards = found.overview().status, found.cluster_status()
        set_per_s = engine.settings.budget.requests
    if as_json:
        print_json(asdict(status) | {"cluster": asdict(shards)})
    else:
        rows = status_rows(status, set_per_s)
        print_report(Path().resolve().name, [*rows, *_shard_rows(shards)])


def _shard_rows(found: ClusterStatus) -> list[tuple[str, str]]:
    if found.is_running:
        rows = [("price", f"{format_number(found.price)}, common to all shards")]
    else:
        rows = [("cluster", "does not run: 'afresh cluster run'")]
    for shard in found.shards:
        rate = f"{format_number(shard.rate_per_s)}/s" if found.is_running else "stopped"
        where = f"on {shard.node}, " if shard.node else ""
        items = format_count(shard.items, "item")
        rows.append((f"  shard {shard.shard}", f"{items}, {where}{shard.problem or rate}"))
    for host in found.large_hosts:
        words = f"{format_count(host.items, 'item')} in shard {host.shard}: more than a shard has on average"
        rows.append(("large host", f"{host.host}, {words}"))
    return rows


@cluster.command("why")
def cluster_why(
    key: Annotated[str, Argument(metavar="URL", help="The item.")],
    source: project.OfSource = None,
    sets: project.SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Show an item's change rate, how often it is polled, and the reasons, from its shard."""
    from afresh.cli.engine.status_commands import why_rows

    with _opened(sets) as (_, found):
        shard = found.shard_of_item(key, source)
        why = found.why(key, source=source)
    if as_json:
        print_json(asdict(why) | {"shard": shard})
    else:
        print_report(why.item.key, [*why_rows(why), ("shard", str(shard))])


@cluster.command("get")
def cluster_get(
    key: Annotated[str, Argument(metavar="URL", help="The item.")],
    source: project.OfSource = None,
    version: Annotated[int | None, Option(metavar="N", help="Print this version.")] = None,
    sets: project.SetOptions = None,
) -> None:
    """Print the copy of an item on standard output."""
    from afresh.cli.engine.copy_commands import print_content

    with _opened(sets) as (_, found):
        copy = found.get(key, source=source, version=version)
    if copy is None:
        what = "" if version is None else f" of version {version}"
        raise AfreshError(f"there is no copy of {key}{what} yet")
    print_content(copy.content)


@cluster.command("changes")
def cluster_changes(
    since: Annotated[str | None, Option(metavar="CURSOR", help="Only changes after this cursor.")] = None,
    limit: Annotated[int, Option(metavar="N", min=1, help="At most N changes.")] = 1000,
    source: Annotated[str | None, Option(metavar="NAME", help="Only changes of this source.")] = None,
    sets: project.SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Print what changed in all shards. The last line on standard error is the cursor for the next call."""
    from afresh.engine.feed.change_json import change_line

    with _opened(sets) as (_, found):
        page = found.changes(since, limit, source=source)
    for change in page.changes:
        text = f"{format_moment(change.time_s)}  {change.kind:<8}{change.item}"
        print_data(change_line(change) if as_json else text)
    print_note(f"{format_count(len(page.changes), 'change')}; cursor {page.cursor}")


@cluster.command("rebalance")
def cluster_rebalance(
    shards: Shards = None,
    address: Address = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only list what would move.")] = False,
    sets: project.SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Move items to other shards, with all that is known of them, after the number of shards changed. The
    cluster must not run meanwhile; its next run does the same by itself."""
    from afresh.cluster.ray_session import ray_session

    with project.open_project(sets) as engine:
        project.set_up_logs("plain", logging.WARNING)
        spec = _spec(engine, project.read_overrides(sets), shards)
        with ray_session(address) as ray:
            from afresh.cluster.cluster_run import ClusterRun

            moves = ClusterRun(ray, engine, spec, read_secret).rebalance(dry_run=dry_run)
    for move in moves:
        where = "the project" if move.source < 0 else f"shard {move.source}"
        if as_json:
            print_json(asdict(move))
        else:
            print_data(f"{move.host}: {format_count(move.items, 'item')} from {where} to shard {move.target}")
    items = format_count(sum(move.items for move in moves), "item")
    print_note(f"{items} of {format_count(len(moves), 'host')} {'would move' if dry_run else 'moved'}")


@contextmanager
def _opened(
    sets: list[str] | None, more: Mapping[str, str] | None = None
) -> Iterator[tuple[Engine, ClusterProject]]:
    """Yield the engine of the project's own store, and the project over all shards."""
    from afresh.cluster.cluster_project import open_cluster

    with ExitStack() as stack:
        engine = stack.enter_context(project.open_project(sets, more, reading=True))
        spec = _spec(engine, project.read_overrides(sets, more), None, is_reading=True)
        yield engine, open_cluster(engine, spec, stack)


def _spec(
    engine: Engine, overrides: dict[str, str], shards: int | None, *, is_reading: bool = False
) -> ShardSpec:
    """Return what the processes of the cluster need to know of this project."""
    from afresh.cluster.layout import read_layout
    from afresh.cluster.shard_settings import ShardSpec, project_name
    from afresh.engine.runner.listing_changes import read_listings
    from afresh.engine.settings.parsing import FILE_NAME

    known = read_layout(engine.store).shards
    if shards is None and not known and not is_reading:
        raise UsageError("say how many shards there are to be: --shards 4")
    folder = Path().resolve()
    listings = {
        table.settings.name: read_listings(engine.store, table.settings.name)
        for table in engine.settings.sources
    }
    return ShardSpec(
        shard=-1,
        shards=known if shards is None else tuple(range(shards)),
        text=Path(FILE_NAME).read_text(encoding="utf-8"),
        overrides=overrides,
        folder=str(folder),
        project=project_name(f"{folder} {engine.settings.store.url}"),
        listings=listings,
    )


def read_secret(name: str) -> str | None:
    """Return a secret of the environment. Shards call it on their node, whose environment then counts."""
    return os.environ.get(name)
