"""``afresh hooks``: the changes that hooks could not be told, and telling changes again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from afresh.cli.engine.project import known_source, open_project
from afresh.cli.options import PrintJson
from afresh.cli.summary import print_data, print_json, print_note
from afresh.values.errors import UsageError, one_of
from afresh.values.formatting import format_count, format_moment

if TYPE_CHECKING:
    from afresh.engine.engine import Engine
    from afresh.engine.reporting.delivery_status import HookFailure

_LISTED = 1000


def hooks(
    action: Annotated[str, Argument(metavar="list|retry|drop|retell", help="What to do.")] = "list",
    numbers: Annotated[
        list[int] | None,
        Argument(metavar="NUMBER…", help="retry, drop: the changes, as 'hooks list' numbers them."),
    ] = None,
    everything: Annotated[bool, Option("--all", help="retry, drop: all changes that failed.")] = False,
    since: Annotated[
        str | None, Option(metavar="CURSOR", help="retell: the changes after this cursor; default all kept.")
    ] = None,
    source: Annotated[
        str | None, Option(metavar="NAME", help="retell: the changes of this source; default all.")
    ] = None,
    as_json: PrintJson = False,
) -> None:
    """List the changes that hooks could not be told, tell them again, or drop them."""
    one_of("action", action, ("list", "retry", "drop", "retell"))
    if action in ("retry", "drop") and bool(numbers) == everything:
        raise UsageError(f"'hooks {action}' needs the numbers of changes, or --all")
    if (since or source) and action != "retell":
        raise UsageError("--since and --source are for 'hooks retell'")
    with open_project(reading=action == "list") as engine:
        if action == "list":
            _print_failures(engine, as_json=as_json)
        elif action == "retell":
            told = engine.feed.retell(since, _hooked_sources(engine, source))
            print_note(f"{format_count(told, 'change')} told again as soon as an engine runs")
        else:
            number = _apply(engine, action, numbers)
            print_note(f"{format_count(number, 'change')} {'retried' if action == 'retry' else 'dropped'}")


def _apply(engine: Engine, action: str, numbers: list[int] | None) -> int:
    """Retry or drop changes that failed: those with these numbers, or all. Return how many there were."""
    events = engine.store.events
    if action == "retry":
        return events.retry(engine.clock.now_s(), numbers)
    dropped = 0
    while found := [one.event.id for one in events.failed(_LISTED) if not numbers or one.event.id in numbers]:
        events.done(found)
        dropped += len(found)
    return dropped


def _hooked_sources(engine: Engine, source: str | None) -> list[str]:
    """Return the sources with hooks, or only ``source``; raise ``UsageError`` if it has none."""
    tables = engine.settings.sources
    hooked = [table.settings.name for table in tables if table.on_change]
    if engine.settings.views.has_hooks():  # their items may be of any source
        hooked = [table.settings.name for table in tables]
    if source is not None and known_source(engine, source) not in hooked:
        raise UsageError(f"the source {source!r} has no hook: set on_change")
    return hooked if source is None else [source]


def _print_failures(engine: Engine, *, as_json: bool) -> None:
    from afresh.engine.reporting.delivery_status import hook_failures

    found = hook_failures(engine.store, _LISTED)
    if as_json:
        failures = [asdict(failure) for failure in found]
        waiting, given_up = engine.store.events.waiting(), engine.store.events.given_up()
        print_json({"waiting": waiting, "given_up": given_up, "failures": failures})
        return
    for failure in found:
        print_data(describe_failure(failure))
    print_note(f"{format_count(engine.store.events.waiting(), 'change')} waiting")


def describe_failure(failure: HookFailure) -> str:
    """Return a change that hooks could not be told, as a line for people."""
    state = "given up" if failure.next_s is None else f"again at {format_moment(failure.next_s)}"
    tries = format_count(failure.attempts, "attempt")
    return (
        f"{failure.id}  {failure.kind}  {failure.source}  {failure.item}  {tries}, {state}: {failure.problem}"
    )
