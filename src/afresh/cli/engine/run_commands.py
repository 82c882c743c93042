"""``afresh run`` keeps the copies fresh until it is stopped; ``afresh serve`` shows them in a browser."""

from __future__ import annotations

import itertools
import logging
import math
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from afresh.cli.engine import project
from afresh.cli.engine.dashboard_server import check_dashboard, make_engine_server
from afresh.cli.engine.settings_commands import check_source
from afresh.cli.interruption import INTERRUPTION
from afresh.cli.options import PrintJson, read_duration
from afresh.cli.summary import print_data, print_json, print_note
from afresh.values.clock import SystemClock
from afresh.values.errors import AfreshError, UsageError, one_of
from afresh.values.formatting import format_count, format_moment

if TYPE_CHECKING:
    from afresh.engine.engine import Engine
    from afresh.engine.runner.engine_run import RunProgress
    from afresh.engine.settings.tables import Settings

_DRY_RUN_ITEMS = 20
_REPORTS_PER_MINUTE = 120


def run(
    budget: Annotated[str | None, Option(metavar="1/s", help="All requests per unit of time.")] = None,
    for_time: Annotated[str | None, Option("--for", metavar="10m", help="Stop after this time.")] = None,
    once: Annotated[bool, Option("--once", help="Poll the due items once, then stop (for cron).")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only list the items to poll first.")] = False,
    host_delay: Annotated[
        str | None, Option(metavar="1s", help="Shortest time between requests to a host.")
    ] = None,
    host_concurrency: Annotated[
        int | None, Option(metavar="N", min=1, help="Requests to one host at once.")
    ] = None,
    web: Annotated[bool, Option("--web", help="Serve the dashboard and the API too.")] = False,
    allow_private: project.AllowPrivate = False,
    sets: project.SetOptions = None,
    log: Annotated[str, Option(metavar="plain|json|debug", help="How to log on standard error.")] = "plain",
    as_json: PrintJson = False,
) -> None:
    """Poll until stopped. SIGTERM finishes polls in flight and stops; SIGHUP reads the settings again."""
    from afresh.engine.settings.overrides import SettingWithOrigin

    one_of("kind of log", log, ("plain", "json", "debug"))
    at_once = None if host_concurrency is None else str(host_concurrency)
    more = project.private_overrides(allow_private) | project.source_overrides(
        {"delay": ("--host-delay", host_delay), "concurrency": ("--host-concurrency", at_once)}
    )
    if budget is not None:
        more["budget.requests"] = SettingWithOrigin(budget, f"--budget {budget}")
    for_s = read_duration("--for", for_time, math.inf)
    if web:
        check_dashboard(sets, more)
    with project.open_project(sets, more, reading=dry_run) as engine:
        project.set_up_logs(log, logging.DEBUG if log == "debug" else logging.INFO)
        if dry_run:
            _print_first_due(engine, as_json)
            return
        for table in engine.settings.sources:
            check_source(table)
        _log_start(engine)
        with _dashboard(engine, web):
            progress = engine.run(
                for_s=for_s,
                once=once,
                report=_draw_progress if sys.stderr.isatty() else _log_each_minute(),
                reload=_SettingsReader(project.read_overrides(sets, more)),
            )
        _report_end(engine, progress, as_json)
        code = progress.failed.exit_code()
        # A long run may end while an item fails; it failed as a whole if nothing at all succeeded.
        if code and (once or (for_time is not None and code == AfreshError.exit_code)):
            raise typer.Exit(code)


def serve(
    host: Annotated[
        str | None, Option(metavar="NAME", help="Address to listen on; default: only this machine.")
    ] = None,
    port: Annotated[int | None, Option(metavar="N", help="Port to listen on; 0: any free port.")] = None,
    sets: project.SetOptions = None,
) -> None:
    """Show the copies in a browser, and answer the API, until stopped."""
    given = {"web.host": host, "web.port": None if port is None else str(port)}
    more = {key: value for key, value in given.items() if value is not None}
    check_dashboard(sets, more)
    with project.open_project(sets, more, reading=True) as engine:
        server = make_engine_server(engine)
        with INTERRUPTION.stopping_by(server.stop):
            print_note(f"dashboard at {server.address} (Ctrl-C to stop)")
            server.run()
        INTERRUPTION.check()


def _dashboard(engine: Engine, wanted: bool) -> AbstractContextManager[object]:
    """Return a context in which a thread serves the dashboard, or an empty context if not ``wanted``."""
    if not wanted:
        return nullcontext()
    from afresh.engine.logs import log_event

    server = make_engine_server(engine)
    log_event(logging.INFO, "dashboard", address=server.address)
    return server


class _SettingsReader:
    """Reads the settings again when it is called, and warns if the file changed a setting that an override
    (option or environment) replaces, because such a change has no effect."""

    def __init__(self, overrides: dict[str, str]) -> None:
        self._overrides, self._in_file = overrides, _read_file_alone()

    def __call__(self) -> Settings:
        """Return the settings that apply now."""
        from afresh.engine.app import read_folder
        from afresh.engine.logs import log_event
        from afresh.engine.runner.reload import ineffective_changes

        settings = read_folder(Path(), self._overrides)
        before, self._in_file = self._in_file, _read_file_alone()
        if before is not None and self._in_file is not None:
            for words in ineffective_changes(before, self._in_file, self._overrides):
                log_event(logging.WARNING, "settings reloaded", change=words)
        return settings


def _read_file_alone() -> Settings | None:
    """Return the settings of the file without overrides, or None if the file is not valid without them."""
    from afresh.engine.app import read_folder

    try:
        return read_folder(Path())
    except UsageError:
        return None


def _log_start(engine: Engine) -> None:
    """Log that the run starts. Warn if the delays between requests to a host do not allow the whole budget,
    and if sources are outside their allowed hours."""
    from afresh.engine.logs import log_event
    from afresh.engine.reporting.group_status import group_statuses

    counts, now_s = engine.store.items.counts(), SystemClock().now_s()
    groups = group_statuses(engine.store, counts, engine.settings, now_s)
    active = sum(group.items for group in groups)
    asked, taken = engine.settings.budget.of_items(active).requests, sum(group.most_per_s for group in groups)
    log_event(logging.INFO, "started", items=active, hosts=len(groups), budget_per_s=asked)
    if engine.settings.budget.each_item:
        log_event(logging.INFO, f"the budget is {engine.settings.budget.describe_requests(active)}")
    if not counts and not _has_listings(engine):
        log_event(logging.INFO, "there are no items yet: add some with 'afresh add'")
    if groups and taken < asked:
        problem = "the delays between requests to a host allow fewer requests than the budget"
        log_event(logging.WARNING, problem, budget_per_s=asked, absorbed_per_s=taken)
    closed = engine.settings.closed_sources(now_s)
    if closed and len(closed) == len(engine.settings.sources):
        until = format_moment(min(closed.values()))
        log_event(
            logging.WARNING, f"every source is outside its windows until {until}: nothing is polled before"
        )
    else:
        for name, opens_s in closed.items():
            log_event(logging.INFO, f"outside its windows until {format_moment(opens_s)}", source=name)


def _has_listings(engine: Engine) -> bool:
    """Return whether a source finds its items itself, or in documents that were added."""
    from afresh.engine.runner.listing_changes import read_listings

    tables = [table.settings for table in engine.settings.sources]
    return any(table.lists_items or read_listings(engine.store, table.name) for table in tables)


def _print_first_due(engine: Engine, as_json: bool) -> None:
    first = engine.due(_DRY_RUN_ITEMS, within_budget=False)
    for entry in first:
        if as_json:
            print_json({"item": entry.key})
        else:
            print_data(entry.key)
    which = f"these are the first {len(first)} of what is due" if first else "nothing is due now"
    print_note(f"nothing was polled; {which}")


def _report_end(engine: Engine, progress: RunProgress, as_json: bool) -> None:
    from afresh.engine.logs import log_event
    from afresh.engine.reporting.status import count_problems

    done = asdict(progress) | {"in_flight": None, "trouble": None, "failed": None}
    if not engine.store.items.counts():
        done["freshness"] = None  # without items nothing is known, not even that nothing is stale
    done = {name: value for name, value in done.items() if value is not None}
    log_event(logging.INFO, "stopped", **done)
    failed = progress.failed
    for name, reason in (failed.sources | failed.hosts).items():
        log_event(logging.WARNING, f"{name} failed", problem=reason)
    for problem in count_problems(engine.store) if progress.failures else ():
        log_event(
            logging.WARNING,
            f"{format_count(problem.items, 'item')} could not be polled",
            problem=problem.words,
        )
    status = None if engine.settings.plan.target is None else engine.status()
    if status is not None and status.below_target:
        audited, target = status.audited.value, status.target
        log_event(logging.WARNING, "freshness is below the target", audited=audited, target=target)
    if status is not None and status.above_content_lag_target:
        found = {"lag_s": status.content_lag_s, "target_s": status.content_lag_target_s}
        log_event(logging.WARNING, "content lag is above the target", **found)
    if as_json:
        parts = {"items": failed.items, "sources": failed.sources, "hosts": failed.hosts}
        print_json(done | {f"failed_{part}": words for part, words in parts.items()})


def _draw_progress(progress: RunProgress) -> None:
    """Draw the progress in one line of the terminal, over the previous progress."""
    text = (
        f"{format_count(progress.polls, 'poll')}  {format_count(progress.changes, 'change')}  "
        f"{progress.failures:,} failed  {progress.in_flight} under way  "
        f"freshness {progress.freshness:.3f}  {progress.trouble}"
    )
    sys.stderr.write(project.CLEAR_LINE + text[: shutil.get_terminal_size().columns - 1])
    sys.stderr.flush()


def _log_each_minute() -> Callable[[RunProgress], None]:
    """Return a function that logs every 120th progress report, because the engine reports twice a second."""
    from afresh.engine.logs import log_event

    reports = itertools.count(1)

    def report(progress: RunProgress) -> None:
        if next(reports) % _REPORTS_PER_MINUTE == 0:
            counts = {"polls": progress.polls, "changes": progress.changes, "failures": progress.failures}
            log_event(logging.INFO, "running", **counts, freshness=progress.freshness)

    return report
