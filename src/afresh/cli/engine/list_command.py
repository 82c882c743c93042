"""``afresh list`` shows the items that fit its options, one on each line."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from typer import Option

from afresh.cli.engine.project import open_project
from afresh.cli.engine.selection_options import FromSource, Match, WithStatus, read_selection
from afresh.cli.options import PrintJson
from afresh.cli.summary import print_data, print_note, to_json_value
from afresh.values.errors import UsageError, one_of
from afresh.values.formatting import format_count
from afresh.values.printable_text import printable, printable_json
from afresh.values.units import CHANGES_PER, UNIT_SECONDS, changes_unit, format_duration

if TYPE_CHECKING:
    from afresh.engine.reporting.item_list import Cell

_WIDTHS = {"item": 0, "problem": 0, "selector": 0, "source": 12, "group": 24, "status": 8, "plan": 10}
_NUMBER_WIDTH, _COUNT_WIDTH = 10, 7
_LEFT_OUT = ("polled", "failures", "polls")  # of the usual columns, in a terminal too narrow for the item
_ITEM_WIDTH = 36  # what an item should have at least


def list_items(
    match: Match = None,
    source: FromSource = None,
    status: WithStatus = None,
    columns: Annotated[
        str | None, Option("--columns", metavar="A,B,…", help="The columns, such as item,rate,interval.")
    ] = None,
    sort: Annotated[
        str, Option("--sort", metavar="NAME", help="id, key, due, changed, failures or weight.")
    ] = "id",
    descending: Annotated[bool, Option("--descending", help="The largest first.")] = False,
    limit: Annotated[int | None, Option("--limit", metavar="N", help="At most N items.")] = None,
    output: Annotated[
        str | None,
        Option("-o", "--output", metavar="FILE", help="A table (.csv, .jsonl, …); - is CSV."),
    ] = None,
    as_json: PrintJson = False,
) -> None:
    """List items."""
    from afresh.engine.reporting.item_list import COLUMNS, DEFAULT_COLUMNS, item_rows
    from afresh.engine.reporting.item_selection import selected_items
    from afresh.values.items import SORTS

    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit}: give 1 or more")
    if output is not None and as_json:
        raise UsageError("--json goes to standard output: not with --output")
    names = [name.strip() for name in columns.split(",")] if columns else list(DEFAULT_COLUMNS)
    wanted = [one_of("column", name, COLUMNS) for name in names]
    order = next(name for name in SORTS if name == one_of("sort", sort, SORTS))
    with open_project(reading=True) as engine:
        selection = read_selection(engine, match, source, status)
        items = selected_items(engine.store, selection, sort=order, descending=descending)
        now_s = engine.clock.now_s()
        found = item_rows(engine.store, engine.running_settings(), islice(items, limit), wanted, now_s)
        if output is not None:
            _write_table(found, wanted, output)
        elif as_json:
            _print_json(found)
        else:
            number = _print_lines(found, wanted, now_s, is_chosen=columns is not None)
            wider = f"*{(match or '').strip('*')}*"
            if number == 0 and match and match != wider:
                print_note(f"a pattern must match the whole key, as {wider!r} does for a part of it")


def _write_table(found: Iterable[list[dict[str, Cell]]], columns: Sequence[str], output: str) -> None:
    from afresh.engine.reporting.item_list import COLUMNS
    from afresh.tables.writing import TableWriter

    number = 0
    with TableWriter(output, {name: COLUMNS[name].kind for name in columns}) as writer:
        for rows in found:
            writer.write({name: [row[name] for row in rows] for name in columns})
            number += len(rows)
        if not number:
            writer.write({name: [] for name in columns})
    print_note(format_count(number, "item"))


def _print_json(found: Iterable[list[dict[str, Cell]]]) -> None:
    """Print one JSON object with all items, batch by batch, because there may be millions."""
    import json

    number = 0
    print_data('{"items": [')
    for rows in found:
        for row in rows:
            text = json.dumps(to_json_value(row), ensure_ascii=False, allow_nan=False)
            print_data((", " if number else "") + printable_json(text))
            number += 1
    print_data(f'], "count": {number}}}')


def _print_lines(
    found: Iterable[list[dict[str, Cell]]], columns: Sequence[str], now_s: float, *, is_chosen: bool
) -> int:
    """Print a line for each item below a line of titles; return the number of items. One column alone has no
    title, so that other commands can read it by ``--file -``. In a terminal, lines of several columns are not
    wrapped: usual columns (that nobody has chosen) are left out, and items are shortened. Files and pipes get
    all."""
    longest = None
    if sys.stdout.isatty() and len(columns) > 1:
        columns, longest = fit_columns(columns, shutil.get_terminal_size().columns, is_chosen=is_chosen)
    if len(columns) > 1:
        print_data("  ".join(_padded(name, name) for name in columns).rstrip())
    number = 0
    for rows in found:
        for row in rows:
            cells = (_cell(name, row[name], now_s, longest) for name in columns)
            print_data("  ".join(cells).rstrip())
        number += len(rows)
    if len(columns) > 1:
        print_note(format_count(number, "item"))
    return number


def fit_columns(columns: Sequence[str], width: int, *, is_chosen: bool) -> tuple[list[str], int]:
    """Return a tuple (columns, longest item) for lines of this width.

    >>> fit_columns(["status", "polled", "changed", "due", "polls", "changes", "item"], 80, is_chosen=False)
    (['status', 'changed', 'due', 'changes', 'item'], 36)
    """
    shown = list(columns)
    for name in () if is_chosen else _LEFT_OUT:
        if name in shown and _room(shown, width) < _ITEM_WIDTH:
            shown.remove(name)
    return shown, max(_room(shown, width), _ITEM_WIDTH // 3)


def _room(columns: Sequence[str], width: int) -> int:
    """Return how many characters of a line are left for the item."""
    return width - 1 - sum(len(_padded(name, name)) + 2 for name in columns if name != "item")


def _shortened(text: str, longest: int | None) -> str:
    """Cut the middle out of a long text. The end of an address says more than its beginning.

    >>> _shortened("http://a.test/shop/shoes/17.html", 20)
    'http://…oes/17.html'
    """
    if longest is None or len(text) <= longest:
        return text
    head = longest // 3 + 1
    return f"{text[:head]}…{text[len(text) - (longest - head - 2) :]}"


def _cell(name: str, value: Cell, now_s: float, longest: int | None) -> str:
    text = _words(name, value, now_s)
    return _padded(name, _shortened(text, longest) if name == "item" else text)


def _padded(column: str, text: str) -> str:
    from afresh.engine.reporting.item_list import COLUMNS

    if column in _WIDTHS:
        return text.ljust(_WIDTHS[column])
    count = COLUMNS[column].kind == "count"
    return text.rjust(max(len(column), _COUNT_WIDTH) if count else max(len(column), _NUMBER_WIDTH))


def _words(name: str, value: Cell, now_s: float) -> str:
    """Return a cell as people read it: times as ages, such as ``5 min ago``."""
    from afresh.engine.reporting.item_list import COLUMNS

    if value is None:
        return "-"
    if COLUMNS[name].is_time and isinstance(value, int | float):
        if math.isinf(value):
            return "never"
        span = format_duration(round(abs(now_s - value), 1))
        return f"{span} ago" if value <= now_s else f"in {span}"
    if name in ("interval", "min_interval", "max_interval") and isinstance(value, int | float):
        return "never" if math.isinf(value) else format_duration(value * 86400.0)
    if name == "rate" and isinstance(value, int | float):
        return _rate(value / UNIT_SECONDS["d"])
    if isinstance(value, float):
        return f"{value:.3g}"
    return printable(str(value))


def _rate(per_second: float) -> str:
    """Return a rate of changes in words.

    >>> _rate(0.08), _rate(0.0)
    ('290 an hour', '0')
    """
    unit = changes_unit(per_second)
    number = float(f"{per_second * UNIT_SECONDS[unit]:.2g}")
    return f"{number:,g} {CHANGES_PER[unit]}" if per_second else "0"
