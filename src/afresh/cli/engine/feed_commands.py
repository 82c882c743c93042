"""``afresh changes`` prints what changed; ``afresh consumers`` shows and moves the programs that follow."""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Argument, Option

from afresh.cli.engine.project import known_source, open_project
from afresh.cli.options import PrintJson
from afresh.cli.summary import print_data, print_json, print_note, print_report
from afresh.tables.atomic_output import open_output
from afresh.tables.formats import STANDARD_STREAM
from afresh.values.clock import SystemClock
from afresh.values.errors import AfreshError, UsageError, one_of
from afresh.values.formatting import format_count, format_moment
from afresh.values.printable_text import printable, printable_json
from afresh.values.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from afresh.engine.feed.feed_reader import ChangeQuery, FeedReader
    from afresh.values.changes import Change, Consumer

_PAGE = 5000
_BATCH = 100  # changes that a command of --exec gets at once


def changes(
    since: Annotated[
        str | None, Option(metavar="CURSOR", help="Only changes after this cursor; 'now': later ones.")
    ] = None,
    follow: Annotated[bool, Option("--follow", "-f", help="Wait for further changes.")] = False,
    source: Annotated[str | None, Option(metavar="NAME", help="Only changes of this source.")] = None,
    limit: Annotated[int | None, Option(metavar="N", help="Stop after N changes.", min=1)] = None,
    content: Annotated[
        str | None, Option(metavar="raw|text|markdown", help="With the content of each copy (--json).")
    ] = None,
    consumer: Annotated[
        str | None, Option(metavar="NAME", help="Begin where this consumer stopped, and save its place.")
    ] = None,
    run: Annotated[
        str | None,
        Option("--exec", metavar="COMMAND", help="Give the changes to a command, as lines of JSON."),
    ] = None,
    cursor: Annotated[bool, Option("--cursor", help="Print the cursor of the newest change.")] = False,
    as_json: PrintJson = False,
) -> None:
    """Print what changed: new, changed, gone and removed items, in the order of the commits."""
    from afresh.engine.feed.feed_reader import ChangeQuery

    if content is not None and not as_json and run is None:
        raise UsageError("--content needs --json or --exec: a content is not one line of text")
    with open_project(reading=consumer is None) as engine:
        if cursor:
            newest = engine.feed.cursor()
            print_json({"cursor": newest}) if as_json else print_data(newest)
            return
        query = ChangeQuery(known_source(engine, source), content)
        since = engine.feed.cursor() if since == "now" else since
        place = None if consumer is None else engine.feed.place_of(consumer, query.source)
        since = since if place is None else place.begin(since)
        asked = _Asked(since, query, limit or math.inf, follow, _PAGE if run is None else _BATCH)
        with open_output(STANDARD_STREAM) if run is None else nullcontext() as out:
            for lines, reached in _line_pages(engine.feed, asked, as_json=as_json or run is not None):
                _hand_over(lines, out, run, as_json=as_json)
                if place is not None:
                    place.reach(reached)
                    place.save()


class _Asked(NamedTuple):
    """Which changes are printed, in pages of ``size``."""

    since: str | None
    query: ChangeQuery
    limit: float
    wait: bool
    size: int


def _line_pages(feed: FeedReader, asked: _Asked, *, as_json: bool) -> Iterator[tuple[list[str], str]]:
    """Yield for each page of changes a tuple: a line for each change, and the cursor after them."""
    from afresh.engine.feed.change_json import change_line, entry_line

    since, query, limit, wait, size = asked
    if as_json and query.content is None:
        for entries in feed.entry_pages(since, query.source, limit=limit, wait=wait, size=size):
            yield list(map(entry_line, entries.entries)), entries.cursor
        return
    for page in feed.pages(since, query, limit=limit, wait=wait, size=size):
        yield [change_line(each) if as_json else _describe(each) for each in page.changes], page.cursor


def _hand_over(lines: list[str], out: IO[bytes] | None, run: str | None, *, as_json: bool) -> None:
    """Write lines to ``out``, or give them to the command ``run``."""
    if not lines:
        return
    if out is not None and sys.stdout.isatty():
        lines = [printable_json(line) if as_json else printable(line) for line in lines]
    packed = ("\n".join(lines) + "\n").encode(errors="surrogateescape")
    if out is None:
        _run_command(str(run), packed)
        return
    out.write(packed)
    out.flush()


def _describe(change: Change) -> str:
    """Return a change as a line for people."""
    size = ""
    if change.size is not None:
        more = change.size - (change.previous_size or 0)
        size = f"  {change.size:,} B" + (f" ({more:+,})" if change.previous_size is not None else "")
    when = format_moment(change.time_s)
    return f"{when}  {change.kind:8}{change.source}  {change.item}  version {change.version}{size}"


def _run_command(command: str, lines: bytes) -> None:
    """Run a command with these lines on its standard input; raise ``AfreshError`` if it fails."""
    words = shlex.split(command)
    if not words:
        raise UsageError("--exec needs a command")
    try:
        done = subprocess.run(words, input=lines, check=False, env=dict(os.environ))
    except OSError as error:
        raise AfreshError(f"--exec {words[0]}: {error.strerror}") from None
    if done.returncode:
        raise AfreshError(f"--exec {words[0]} ended with exit code {done.returncode}: its changes come again")


def consumers(
    action: Annotated[str, Argument(metavar="list|reset|remove", help="What to do.")] = "list",
    name: Annotated[str | None, Argument(metavar="NAME", help="reset, remove: the consumer.")] = None,
    to: Annotated[
        str | None,
        Option(
            metavar="CURSOR", help="reset: continue after this cursor, or 'now'; default: from the start."
        ),
    ] = None,
    as_json: PrintJson = False,
) -> None:
    """List the programs that follow the changes, move one to another place, or forget it."""
    one_of("action", action, ("list", "reset", "remove"))
    if (name is None) != (action == "list"):
        raise UsageError("'consumers reset NAME' and 'consumers remove NAME' need a name, 'list' none")
    if to is not None and action != "reset":
        raise UsageError("--to is for 'consumers reset'")
    with open_project(reading=action == "list") as engine:
        if name is None:
            _print_consumers(engine.feed.consumers(), as_json=as_json)
            return
        found = engine.feed.find_consumer(name)
        if action == "remove":
            engine.feed.remove_consumer(name)
            print_note(f"{name} is forgotten")
            return
        cursor = engine.feed.start() if to is None else engine.feed.cursor() if to == "now" else to
        engine.feed.move_consumer(name, cursor, found.source)
        print_note(f"{name} continues after {cursor}")


def _print_consumers(found: list[Consumer], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "name": one.name,
                "source": one.source or None,
                "cursor": one.cursor,
                "behind": one.behind,
                "moved_s": one.moved_s,
            }
            for one in found
        ]
        print_json({"consumers": rows})
        return
    if not found:
        print_note("there are no consumers: 'afresh changes --consumer NAME' makes one")
        return
    now_s = SystemClock().now_s()
    print_report(
        "consumers",
        [
            (
                one.name,
                f"{format_count(one.behind, 'change')} behind, moved "
                f"{format_duration(max(0.0, now_s - one.moved_s))} ago"
                + (f", source {one.source}" if one.source else ""),
            )
            for one in found
        ],
    )
