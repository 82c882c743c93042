"""``afresh get`` prints the copy of one item; ``afresh export`` writes every copy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from typer import Argument, Option

from afresh.cli.engine.project import (
    AllowPrivate,
    OfSource,
    SetOptions,
    known_source,
    open_project,
    private_overrides,
)
from afresh.cli.engine.selection_options import FromSource, Match, WithStatus, read_selection
from afresh.cli.options import PrintJson, read_duration
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import print_data, print_json, print_note
from afresh.tables.atomic_output import open_output, write_bytes
from afresh.tables.formats import STANDARD_STREAM
from afresh.values.clock import SystemClock
from afresh.values.diffs.line_diff import unified_lines
from afresh.values.errors import AfreshError, UsageError, one_of
from afresh.values.formatting import format_count, format_moment
from afresh.values.printable_text import printable
from afresh.values.units import format_duration

if TYPE_CHECKING:
    from afresh.engine.engine import Engine
    from afresh.engine.reporting.export import TextWriter
    from afresh.sources.texts.main_text import TextForm
    from afresh.values.items import Item
    from afresh.values.stored import Copy, Version

AsText: TypeAlias = Annotated[bool, Option("--text", help="The main text instead of the content.")]
AsMarkdown: TypeAlias = Annotated[bool, Option("--markdown", help="The main text as Markdown.")]


def get(
    key: Annotated[str, Argument(metavar="URL", help="The item.")],
    source: OfSource = None,
    max_age: Annotated[
        str | None, Option(metavar="1h", help="Poll the item first if its last poll is older.")
    ] = None,
    version: Annotated[
        int | None, Option(metavar="N", help="Print this version; -1 is the one before the newest.")
    ] = None,
    diff: Annotated[bool, Option("--diff", help="Show the changes since the previous version.")] = False,
    text: AsText = False,
    markdown: AsMarkdown = False,
    allow_private: AllowPrivate = False,
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Print the copy of an item on standard output."""
    max_age_s, form = read_duration("--max-age", max_age, math.inf), _text_form(text, markdown)
    with open_project(sets, private_overrides(allow_private), reading=max_age is None) as engine:
        began_s, source = SystemClock().now_s(), known_source(engine, source)
        _check_known(engine, key, source)
        versions = engine.versions(key, source=source)
        number = _version_number(versions, key, version)
        copy = engine.get(key, source=source, max_age_s=max_age_s, version=number)
        versions = engine.versions(key, source=source)  # a poll may have added one
        if copy is None:
            if version is not None:
                raise UsageError(f"there is no copy of {key} of version {version}")
            reason = _reason_not_polled(engine, engine.store.items.get(key, source), began_s)
            reason = reason or "'afresh run' fetches it, or --max-age 0s"
            raise AfreshError(f"there is no copy of {key} yet: {reason}")
        with _shown_as(engine, form) as shown:
            if diff:
                older = [each for each in versions if each.number < copy.version.number]
                before = engine.get(key, source=source, version=older[0].number) if older else None
                if before is None:
                    print_note(f"there is only one version of {key}: there is nothing to compare yet")
                else:
                    _print_diff(key, shown(before), shown(copy))
            elif as_json:
                about: dict[str, object] = {"item": key, "address": _address(engine, key, source)}
                about |= _described(copy.version, versions)
                print_json(about | ({form: shown(copy).decode()} if form else {}))
            else:
                print_content(shown(copy))
        if max_age is not None and version is None:
            _fail_if_old(engine, engine.store.items.get(key, source), max_age_s, began_s)


def _check_known(engine: Engine, key: str, source: str | None) -> None:
    """Raise ``UnknownItemError``, with a similar key, if there is no item ``key``."""
    if engine.store.items.get(key, source) is None:
        from afresh.engine.reporting.why import unknown_item

        raise unknown_item(engine.store, engine.settings, key)


def _address(engine: Engine, key: str, source: str | None) -> str:
    """Return the address that the newest copy of an item came from, after redirects."""
    from afresh.engine.reporting.why import final_address

    item = engine.store.items.get(key, source)
    return (final_address(engine.store, item) if item is not None else "") or key


def _text_form(text: bool, markdown: bool) -> TextForm | None:
    if text and markdown:
        raise UsageError("--text and --markdown exclude each other")
    if not (text or markdown):
        return None
    return "text" if text else "markdown"


@contextmanager
def _shown_as(engine: Engine, form: TextForm | None) -> Iterator[Callable[[Copy], bytes]]:
    """Yield the function that returns what is shown of a copy: its content, or its text of this form."""
    if form is None:
        yield lambda copy: copy.content
        return
    from afresh.engine.texts import TextReader

    with TextReader(engine.store) as texts:
        yield lambda copy: f"{texts.text_of(copy, form)}\n".encode()


@contextmanager
def _texts_of(engine: Engine, form: TextForm | None) -> Iterator[TextWriter | None]:
    """Yield what writes the texts of copies in place of their contents; None if no form is wanted."""
    if form is None:
        yield None
        return
    from afresh.engine.reporting.export import TextWriter
    from afresh.engine.texts import TextReader
    from afresh.sources.texts.main_text import check_text_extra

    check_text_extra()
    items = sum(count.items for count in engine.store.items.counts())
    with TextReader(engine.store) as texts, ProgressBar("texts", items) as progress:
        yield TextWriter(texts, form, progress.reach)


def _described(found: Version, versions: list[Version]) -> dict[str, object]:
    about = {"time": found.time_s, "media_type": found.media_type, "size": found.size}
    numbers = [each.number for each in versions]
    return {"version": found.number, **about, "change_size": found.change_size, "versions": numbers}


def print_content(content: bytes) -> None:
    """Write a content to standard output: verbatim, unless that is a terminal, which would obey what is in
    it."""
    if sys.stdout.isatty():
        content = printable(content.decode(errors="replace"), lines=True).encode()
    write_bytes(STANDARD_STREAM, content)


def _fail_if_old(engine: Engine, item: Item | None, max_age_s: float, now_s: float) -> None:
    """Raise ``AfreshError`` if the item's last poll was more than ``max_age_s`` seconds before ``now_s``."""
    if item is not None and item.polled_s is not None and now_s - item.polled_s > max_age_s:
        why = _reason_not_polled(engine, item, now_s) or "another engine is polling it"
        raise AfreshError(f"the last poll is {format_duration(now_s - item.polled_s)} old: {why}")


def _reason_not_polled(engine: Engine, item: Item | None, now_s: float) -> str:
    """Return why an item could not be polled (its source is closed, or its last poll failed), or ""."""

    if item is None:
        return ""
    opens_s = engine.settings.closed_sources(now_s).get(item.source)
    if opens_s is None:
        return item.problem
    return f"its source is outside its windows until {format_moment(opens_s)}"


def _version_number(versions: list[Version], key: str, version: int | None) -> int | None:
    """Return the number of a version. 0 is the newest version, −1 the version before it, and so on."""
    if version is None or version > 0:
        return version
    if len(versions) <= -version:
        kept = format_count(len(versions), "version")
        raise UsageError(f"{key} has {kept}, none {-version} before the newest")
    return versions[-version].number


def _print_diff(key: str, before: bytes, after: bytes) -> None:
    old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
    for line in unified_lines(old, new, f"{key} (before)", key):
        print_data(line)


def export(
    kind: Annotated[
        str, Option("--format", metavar="jsonl|parquet|dir|polls", help="What to write; polls: no copies.")
    ] = "jsonl",
    output: Annotated[
        str | None, Option("-o", "--output", metavar="PATH", help="File or folder; by default stdout.")
    ] = None,
    match: Match = None,
    source: FromSource = None,
    status: WithStatus = None,
    text: AsText = False,
    markdown: AsMarkdown = False,
    since: Annotated[
        str | None, Option(metavar="CURSOR", help="Only copies that are new or changed since then.")
    ] = None,
) -> None:
    """Write every copy (item, polled, changed, content), or every poll, as afresh estimate reads them."""
    from afresh.engine.reporting.export import write_folder, write_jsonl, write_parquet, write_polls

    one_of("format", kind, ("jsonl", "parquet", "dir", "polls"))
    if since is not None and kind == "polls":
        raise UsageError("--format polls writes no copies: leave out --since")
    form = _text_form(text, markdown)
    if form is not None and kind == "polls":
        raise UsageError(f"--format polls writes no copies: leave out --{form}")
    if kind == "dir" and output is None:
        raise UsageError("--format dir needs a folder: give -o DIR")
    with open_project(reading=True) as engine:
        selection = replace(read_selection(engine, match, source, status), since=since)
        if kind == "dir":
            with _texts_of(engine, form) as texts:
                number = write_folder(engine.store, Path(str(output)), selection, texts)
            _note_missing(texts)
            print_note(format_count(number, "copy"))
            return
        if kind == "polls":
            number = write_polls(engine.store, STANDARD_STREAM if output is None else output, selection)
            print_note(format_count(number, "poll"))
            return
        with (
            _texts_of(engine, form) as texts,
            open_output(STANDARD_STREAM if output is None else output) as file,
        ):
            write = write_parquet if kind == "parquet" else write_jsonl
            number = write(engine.store, file, selection, texts)
            _note_missing(texts)
            # Inside the context, so that nothing is printed if the reader of the pipe has closed it.
            print_note(format_count(number, "copy"))


def _note_missing(texts: TextWriter | None) -> None:
    if texts is not None and texts.missing:
        print_note(f"{format_count(texts.missing, 'copy')} without text: the output says why")
