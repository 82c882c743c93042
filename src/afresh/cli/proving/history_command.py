"""``afresh history git`` writes the changes in a git repository as a history that can be replayed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from afresh.cli.help_texts import PlainCommand, PlainGroup
from afresh.cli.options import JsonSummary, parse_moment
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import print_json, print_note, print_summary
from afresh.tables.columns import TEXT, Kind
from afresh.values.errors import OutputError

history = typer.Typer(cls=PlainGroup, no_args_is_help=True, help="Make histories of changes to replay.")


@history.callback()
def histories() -> None:
    """Make histories of changes to replay."""


@history.command("git", cls=PlainCommand)
def history_git(
    repository: Annotated[Path, Argument(metavar="REPO", help="A git repository, bare or not.")],
    name: Annotated[
        str, Option("-o", "--output", metavar="NAME", help="Writes NAME.changes.csv and NAME.items.csv.")
    ],
    paths: Annotated[
        list[str] | None, Option(metavar="'docs/**'", help="Only paths that match; may be given again.")
    ] = None,
    start: Annotated[
        str | None, Option(metavar="TIME", help="By default the time of the first commit.")
    ] = None,
    end: Annotated[str | None, Option(metavar="TIME", help="By default the time of the last commit.")] = None,
    follow_renames: Annotated[
        bool, Option("--follow-renames", help="A file that moves stays the same item.")
    ] = False,
    as_json: JsonSummary = False,
) -> None:
    """Write one item for each path, and one change for each commit that touches it, along first parents.

    NAME.items.csv lists every path that exists at any time in the window, also those that never change.
    """
    window = parse_moment("--start", start), parse_moment("--end", end)
    outputs = check_output_names(name)
    from afresh.histories.git import read_git_history

    with ProgressBar(f"reading {repository}", 1.0) as progress:
        found = read_git_history(
            repository,
            paths=paths or (),
            start=window[0],
            end=window[1],
            follow_renames=follow_renames,
            on_read=progress.reach,
        )
    write_history(outputs, found.items, found.item, found.time)
    changed = len(set(found.item.tolist()))
    counts = {"items": len(found.items), "changed": changed, "changes": int(found.item.size)}
    summary = {**counts, "commits": found.commits, "start": found.start, "end": found.end}
    notes = {"items": f", of which {changed:,} change", "changes": f" in {found.commits:,} commits"}
    report_history("a history", outputs, summary, notes, as_json=as_json)


def check_output_names(name: str) -> dict[str, str]:
    """Return the paths of the two files of a history, by "changes" and "items"; raise ``OutputError`` if they
    cannot be written. ``name`` is the common beginning of both."""
    from afresh.tables.atomic_output import check_writable

    if name == "-" or not Path(name).name:
        raise OutputError(f"{name!r} cannot be the name of two files: give -o a name such as docs")
    outputs = {"changes": f"{name}.changes.csv", "items": f"{name}.items.csv"}
    for path in outputs.values():
        check_writable(path)
    return outputs


def write_history(outputs: dict[str, str], names: Any, item: Any, time: Any, **columns: Any) -> None:
    """Write both files of a history, or neither if there is an error.

    ``names`` are all items. Change i is a change of item number ``item[i]`` at ``time[i]``. ``columns`` are
    further columns of the items' file."""
    from afresh.tables.text_columns import as_texts
    from afresh.tables.writing import TableWriter

    texts = as_texts(names)
    kinds: dict[str, Kind] = {
        key: "number" if hasattr(values, "dtype") else "text" for key, values in columns.items()
    }
    with (
        TableWriter(outputs["items"], {"item": TEXT, **kinds}) as items,
        TableWriter(outputs["changes"], {"item": TEXT, "time": "time"}) as changes,
    ):
        items.write({"item": texts, **columns})
        changes.write({"item": texts.take(item), "time": time})


def report_history(
    title: str, outputs: dict[str, str], summary: dict[str, Any], notes: dict[str, str], *, as_json: bool
) -> None:
    """Print what was written: as JSON, or as a table with the command that replays the history.

    ``summary`` has items, changes, start and end. ``notes`` are texts to print after the numbers of items and
    changes."""
    from afresh.values.formatting import format_iso_time

    if as_json:
        print_json({**summary, "files": outputs})
        return
    start, end = format_iso_time(summary["start"]), format_iso_time(summary["end"])
    rows = [(key, f"{summary[key]:,}{notes.get(key, '')} ({outputs[key]})") for key in ("items", "changes")]
    print_summary(f"{title}; replay it with the command below", [*rows, ("window", f"{start} to {end}")])
    words = ["afresh", "replay", outputs["changes"], "--items", outputs["items"], "--start", start]
    command = shlex.join([*words, "--end", end, "--budget", "0.05/item/d"])
    print_note(command)  # a table would break the line
