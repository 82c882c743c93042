"""``afresh run``: keep the mirror fresh until stopped."""

from __future__ import annotations

import logging
import math
import shutil
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.engine_config import check_source
from afresh.cli.engine_project import (
    CLEAR_LINE,
    AllowPrivate,
    ListJson,
    Sets,
    open_project,
    overrides_of,
    private_overrides,
    set_up_logs,
    source_overrides,
)
from afresh.cli.options import read_duration
from afresh.cli.serve import check_web
from afresh.cli.summary import print_json
from afresh.values.clock import SystemClock
from afresh.values.errors import UsageError, one_of
from afresh.values.formatting import format_count, format_moment

if TYPE_CHECKING:
    from afresh.engine.engine import Engine
    from afresh.engine.runner.run import RunProgress
    from afresh.engine.settings.tables import Settings

_SHOWN = 20
_REPORTS_A_MINUTE = 120


def run(
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="1/s", help="Requests per time, all counted.")
    ] = None,
    for_time: Annotated[
        str | None, typer.Option("--for", metavar="10m", help="Stop after this time.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Poll what is due, once, then stop (for cron).")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be polled first.")] = False,
    host_delay: Annotated[
        str | None,
        typer.Option("--host-delay", metavar="1s", help="Least time between requests to a host."),
    ] = None,
    host_concurrency: Annotated[
        int | None,
        typer.Option("--host-concurrency", metavar="N", min=1, help="Requests to one host at once."),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Serve the dashboard and the API too.")] = False,
    allow_private: AllowPrivate = False,
    sets: Sets = None,
    log: Annotated[
        str, typer.Option("--log", metavar="plain|json|debug", help="How to log on standard error.")
    ] = "plain",
    as_json: ListJson = False,
) -> None:
    """Poll until stopped: SIGTERM drains, SIGHUP reads the settings again."""
    from afresh.engine.settings.overrides import SettingWithOrigin

    one_of("kind of log", log, ("plain", "json", "debug"))
    at_once = None if host_concurrency is None else str(host_concurrency)
    more = private_overrides(allow_private) | source_overrides(
        {"delay": ("--host-delay", host_delay), "concurrency": ("--host-concurrency", at_once)}
    )
    if budget is not None:
        more["budget.requests"] = SettingWithOrigin(budget, f"--budget {budget}")
    for_s = read_duration("--for", for_time, math.inf)
    if web:
        check_web(sets, more)
    with open_project(sets, more, reading=dry_run) as engine:
        set_up_logs(log, logging.DEBUG if log == "debug" else logging.INFO)
        if dry_run:
            _say_first(engine, as_json)
            return
        for table in engine.settings.sources:
            check_source(table)
        _say_start(engine)
        with _dashboard(engine, web):
            progress = engine.run(
                for_s=for_s,
                once=once,
                report=_Line() if sys.stderr.isatty() else _EveryMinute(),
                reload=_Again(sets, more),
            )
        _say_end(engine, progress, as_json)


def _dashboard(engine: Engine, wanted: bool) -> AbstractContextManager[object]:
    """The dashboard beside the engine, from a thread of its own, if wanted."""
    if not wanted:
        return nullcontext()
    from afresh.cli.serve import make_server
    from afresh.engine.logs import log_event

    server = make_server(engine)
    log_event(logging.INFO, "dashboard", address=server.address)
    return server


class _Again:
    """The settings read again; what changed in the file to no effect is said."""

    def __init__(self, sets: list[str] | None, more: dict[str, str]) -> None:
        self._overrides = overrides_of(sets, more)
        self._written = _file_alone()

    def __call__(self) -> Settings:
        """Those that count now."""
        from afresh.engine.app import read_folder
        from afresh.engine.logs import log_event
        from afresh.engine.runner.reload import ineffective_changes

        settings = read_folder(Path(), self._overrides)
        before, self._written = self._written, _file_alone()
        if before is not None and self._written is not None:
            for words in ineffective_changes(before, self._written, self._overrides):
                log_event(logging.WARNING, "settings reloaded", change=words)
        return settings


def _file_alone() -> Settings | None:
    """What the file itself says; None where it needs what goes over it."""
    from afresh.engine.app import read_folder

    try:
        return read_folder(Path())
    except UsageError:
        return None


def _say_start(engine: Engine) -> None:
    """What will be done, and whether the hosts can take the budget at all."""
    from afresh.engine.logs import log_event
    from afresh.engine.ratelimit.source_windows import closed_sources
    from afresh.engine.reporting.group_status import group_statuses

    counts, now_s = engine.store.items.counts(), SystemClock().now_s()
    groups = group_statuses(engine.store, counts, engine.settings, now_s)
    active = sum(group.items for group in groups)
    asked, taken = engine.settings.budget.requests, sum(group.most_per_s for group in groups)
    log_event(logging.INFO, "started", items=active, hosts=len(groups), budget_per_s=asked)
    if groups and taken < asked:
        log_event(
            logging.WARNING,
            "the hosts' delays let through less than the budget: the rest stays unspent",
            budget_per_s=asked,
            absorbed_per_s=taken,
        )
    closed = closed_sources(engine.settings, now_s)
    if closed and len(closed) == len(engine.settings.sources):
        until = format_moment(min(closed.values()))
        log_event(
            logging.WARNING, f"every source is outside its windows until {until}: nothing is polled before"
        )
    else:
        for name, opens_s in closed.items():
            log_event(logging.INFO, f"outside its windows until {format_moment(opens_s)}", source=name)


def _say_first(engine: Engine, as_json: bool) -> None:
    first = engine.due(_SHOWN)
    for entry in first:
        if as_json:
            print_json({"item": entry.key})
        else:
            typer.echo(entry.key)
    which = f"these are the first {len(first)} of what is due" if first else "nothing is due now"
    typer.echo(f"nothing was polled; {which}", err=True)


def _say_end(engine: Engine, progress: RunProgress, as_json: bool) -> None:
    from dataclasses import asdict

    from afresh.engine.logs import log_event
    from afresh.engine.reporting.item_problems import count_problems

    done = asdict(progress) | {"in_flight": None, "trouble": None}
    done = {name: value for name, value in done.items() if value is not None}
    log_event(logging.INFO, "stopped", **done)
    for problem in count_problems(engine.store) if progress.failures else ():
        log_event(
            logging.WARNING, f"{format_count(problem.items, 'item')} could not be had", problem=problem.words
        )
    if engine.settings.plan.target is not None:
        status = engine.status()
        if status.below_target:
            log_event(
                logging.WARNING,
                "freshness is below the target",
                audited=status.audited.value,
                target=status.target,
            )
    if as_json:
        print_json(done)


class _Line:
    """Progress on a terminal: one line that is written over."""

    def __call__(self, progress: RunProgress) -> None:
        """Draw it, as much as fits."""
        text = (
            f"{format_count(progress.polls, 'poll')}  {format_count(progress.changes, 'change')}  "
            f"{progress.failures:,} failed  {progress.in_flight} under way  "
            f"freshness {progress.freshness:.3f}  {progress.trouble}"
        )
        sys.stderr.write(CLEAR_LINE + text[: shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()


class _EveryMinute:
    """Progress in a log: a line a minute."""

    def __init__(self) -> None:
        self._reports = 0

    def __call__(self, progress: RunProgress) -> None:
        """Two reports come a second."""
        from afresh.engine.logs import log_event

        self._reports += 1
        if self._reports % _REPORTS_A_MINUTE == 0:
            counts = {"polls": progress.polls, "changes": progress.changes, "failures": progress.failures}
            log_event(logging.INFO, "running", **counts, freshness=progress.freshness)
