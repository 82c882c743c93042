"""``afresh due`` and ``afresh observe``, for programs that fetch items themselves and report the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from afresh.cli.engine.dbt_commands import observe_run, print_due_models
from afresh.cli.engine.project import SetOptions, open_project
from afresh.cli.files import read_lines
from afresh.cli.options import PrintJson, read_duration
from afresh.cli.summary import print_data, print_json, print_note
from afresh.values.errors import AfreshError, InputError, UsageError
from afresh.values.formatting import format_count
from afresh.values.units import format_duration

_PERIOD_S = 3600.0

if TYPE_CHECKING:
    from afresh.values.items import Item
    from afresh.values.lease import Lease
    from afresh.values.reported import Reported


def due(
    k: Annotated[int, Option(metavar="N", help="List at most N items.", min=1)] = 100,
    lease: Annotated[str | None, Option(metavar="10m", help="Lease the items to you for this time.")] = None,
    source: Annotated[str | None, Option(metavar="NAME", help="List only items of this source.")] = None,
    dbt: Annotated[bool, Option("--dbt", help="List the models of dbt that are worth building now.")] = False,
    for_: Annotated[
        str | None, Option("--for", metavar="1h", help="With --dbt: within the budget of this time.")
    ] = None,
    command: Annotated[
        list[str] | None,
        Argument(metavar="-- COMMAND…", help="With --dbt: run it with --select MODELS if any is due."),
    ] = None,
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """List the items to poll now, as many as the budget allows; those whose polls gain most come first."""
    from afresh.engine.json_rows import LeaseRows

    if dbt:
        for_s = read_duration("--for", for_, _PERIOD_S)
        if lease is not None or not for_s > 0:
            raise UsageError("--lease: not with --dbt" if lease is not None else "--for: give more than 0 s")
        print_due_models(for_s, source, command or [], sets, as_json=as_json)
        return
    if command or for_ is not None:
        raise UsageError(f"{'--for' if for_ is not None else command[0] if command else ''}: only with --dbt")
    lease_s = None if lease is None else read_duration("--lease", lease, 0.0)
    with open_project(sets, reading=lease is None) as engine:
        found: Sequence[Item | Lease] = ()
        retry_after_s = 0.0
        if lease_s is None:
            found = engine.lending.find_due(k, source)
        else:
            lent = engine.lending.lend(k, lease_s, source)
            found, retry_after_s = lent.leases, lent.retry_after_s
        rows = [LeaseRows(engine.store, engine.settings).row(each) for each in found] if as_json else []
        burst = engine.current().budget.burst_requests
    if len(found) < k and len(found) >= int(burst):
        words = (
            f"the budget allows {format_count(len(found), 'request')} now; [budget] burst allows more at once"
        )
        print_note(words)
    for row in rows:
        print_json(row)
    for entry in () if as_json else found:
        print_data(entry.key)
    if retry_after_s > 0:
        print_note(f"more can be leased in {format_duration(retry_after_s)}")


def observe(
    file: Annotated[
        str,
        Argument(metavar="FILE", help="JSONL: item, lease, time, content, changed, status, …; - is stdin."),
    ] = "-",
    dbt: Annotated[
        str | None, Option(metavar="DIR", help="Learn from the last run of dbt, by its folder target.")
    ] = None,
    source: Annotated[str | None, Option(metavar="NAME", help="With --dbt: the source of models.")] = None,
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Record polls that you made yourself: of leased items, or from old poll logs."""
    from afresh.engine.json_rows import answer_row

    if dbt is not None:
        observe_run(dbt, source, sets, as_json=as_json)
        return
    if source is not None:
        raise UsageError("--source: only with --dbt")
    with open_project(sets) as engine:
        try:
            now_s = engine.clock.now_s()
            taken = engine.observe([_parse_row(file, *line, now_s) for line in read_lines(file, "an object")])
        except InputError as error:
            raise InputError(error.problem, path=file, row=error.row, line=0) from None
    if as_json:
        counts = {"taken": taken.taken, "known": taken.known, "refused": list(taken.refused)}
        print_json(counts | {"answers": [answer_row(answer) for answer in taken.answers]})
    for problem in taken.refused:
        print_note(f"not kept: {problem}")
    known = f"; {taken.known:,} already known" if taken.known else ""
    print_note(f"{format_count(taken.taken, 'observation')} taken{known}")
    if taken.refused and not taken.taken and not taken.known:
        raise AfreshError("none of the rows could be taken")


def _parse_row(file: str, number: int, line: str, now_s: float) -> Reported:
    from afresh.engine.json_rows import parse_report

    try:
        given = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", path=file, row=number, line=0) from None
    except RecursionError:
        raise InputError("is JSON with too many levels", path=file, row=number, line=0) from None
    except ValueError:  # Python reads whole numbers of up to 4,300 digits
        raise InputError("has a number with too many digits", path=file, row=number, line=0) from None
    return parse_report(given, now_s, number)
