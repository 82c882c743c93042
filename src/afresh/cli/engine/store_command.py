"""``afresh store check|vacuum|backup|copy|sizes``: maintenance of the store."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from afresh.cli.engine.project import open_project
from afresh.cli.options import PrintJson
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import print_json, print_note, print_report
from afresh.values.clock import SystemClock
from afresh.values.errors import AfreshError, UsageError, one_of
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.stores.store import Upkeep
    from afresh.values.stored import StoreStats

_ARGUMENTS = {"check": 0, "vacuum": 0, "sizes": 0, "backup": 1, "copy": 2}


def store(
    action: Annotated[str, Argument(metavar="check|vacuum|backup|copy|sizes", help="What to do.")],
    first: Annotated[
        str | None, Argument(metavar="FILE|FROM", help="backup: the file to write; copy: the store to copy.")
    ] = None,
    second: Annotated[str | None, Argument(metavar="TO", help="copy: the store to create.")] = None,
    sample: Annotated[
        int | None, Option(metavar="N", help="check: verify the hashes of only N contents.", min=0)
    ] = None,
    as_json: PrintJson = False,
) -> None:
    """Check, shrink, back up or copy the store, also while an engine runs."""
    one_of("action", action, tuple(_ARGUMENTS))
    given = [text for text in (first, second) if text is not None]
    if len(given) != _ARGUMENTS[action]:
        raise UsageError("'store backup FILE' needs a file, 'store copy FROM TO' two stores, others nothing")
    if action == "copy":
        _copy(*given, as_json=as_json)
        return
    with open_project(reading=action != "vacuum") as engine:
        upkeep = engine.store.upkeep
        if action == "check":
            _check(upkeep, sample, as_json)
        else:
            _maintain(upkeep, action, given, as_json)


def _check(upkeep: Upkeep, sample: int | None, as_json: bool) -> None:
    """Check the store, and print what was checked and every problem; raise if there is one."""
    problems, sizes = upkeep.check(sample), upkeep.stats()
    if as_json:
        print_json({"problems": problems, "checked": asdict(sizes)})
    for problem in problems:
        print_note(problem)
    if problems:
        raise AfreshError(f"the store has {format_count(len(problems), 'problem')}")
    hashed = sizes.contents if sample is None else min(sample, sizes.contents)
    print_note(
        f"{format_count(sizes.items, 'item')}, {format_count(sizes.versions, 'version')} of their copies, "
        f"{_megabytes(sizes.file_bytes)}: structure, references and counts are right, "
        f"and so are the hashes of {format_count(hashed, 'content')}"
    )


def _maintain(upkeep: Upkeep, action: str, given: list[str], as_json: bool) -> None:
    before = upkeep.stats()
    if action == "vacuum":
        upkeep.delete_unnamed_copies(SystemClock().now_s())
        upkeep.vacuum()
    elif action == "backup":
        if Path(given[0]).exists():
            raise UsageError(f"{given[0]} is there already: give the backup another name, or remove it first")
        upkeep.backup(Path(given[0]))
    sizes = upkeep.stats()
    if as_json:
        print_json(asdict(sizes))
    if action == "vacuum":
        print_note(f"{_megabytes(sizes.file_bytes)}, before {_megabytes(before.file_bytes)}")
    elif action == "backup":
        print_note(f"{format_count(sizes.items, 'item')} and everything else are now also in {given[0]}")
    elif not as_json:
        _print_sizes(sizes)


def _print_sizes(sizes: StoreStats) -> None:
    rows = [
        ("items", f"{sizes.items:,}; {format_count(sizes.leases, 'lease')}"),
        ("copies", f"{format_count(sizes.versions, 'version')}, {format_count(sizes.contents, 'content')}"),
        ("contents", f"{_megabytes(sizes.content_bytes)}, compressed {_megabytes(sizes.stored_bytes)}"),
        ("waiting", f"{format_count(sizes.events, 'event')}, {format_count(sizes.notices, 'notice')}"),
        ("on disk", f"{_megabytes(sizes.file_bytes)}, of which {_megabytes(sizes.free_bytes)} free"),
    ]
    print_report("store", rows)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _copy(source: str, target: str, *, as_json: bool) -> None:
    """Copy one store to an empty store. If copying was interrupted before, continue it."""
    from afresh.stores.copying import copy_store
    from afresh.stores.opening import open_for_copying

    with (
        open_for_copying(_resolve_address(source), create=False) as copied,
        open_for_copying(_resolve_address(target)) as empty,
        ProgressBar("copying", 1.0) as progress,
    ):
        rows = copy_store(copied.tables, empty.tables, lambda done, total: progress.reach(done / total))
    if as_json:
        print_json({"rows": rows})
    print_note(f"{format_count(rows, 'row')} copied")


def _resolve_address(text: str) -> str:
    """Return the address of a store. ``env:NAME`` hides its password in the environment variable NAME."""
    if not text.startswith("env:"):
        return text
    found = os.environ.get(text.removeprefix("env:"))
    if not found:
        raise UsageError(f"{text}: there is no such variable in the environment")
    return found
