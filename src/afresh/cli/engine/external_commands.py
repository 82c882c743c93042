"""``afresh due``, ``lease`` and ``observe``, for programs that fetch items themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from afresh.cli.engine.dbt_commands import observe_run, print_due_models
from afresh.cli.engine.project import OfSource, SetOptions, known_source, open_project
from afresh.cli.files import read_lines
from afresh.cli.options import PrintJson, read_duration
from afresh.cli.summary import print_data, print_json, print_note
from afresh.values.errors import AfreshError, InputError, UsageError, one_of
from afresh.values.formatting import format_count
from afresh.values.units import format_duration

_PERIOD_S = 3600.0

if TYPE_CHECKING:
    from afresh.engine.lending import LeaseKey
    from afresh.values.items import Item
    from afresh.values.lease import Lease
    from afresh.values.reported import Reported


def due(
    k: Annotated[int, Option(metavar="N", help="List at most N items.", min=1)] = 100,
    lease: Annotated[str | None, Option(metavar="10m", help="Lease the items to you for this time.")] = None,
    source: Annotated[str | None, Option(metavar="NAME", help="List only items of this source.")] = None,
    ahead: Annotated[
        str | None, Option(metavar="1m", help="Also list what the budget allows within this time.")
    ] = None,
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
    ahead_s = read_duration("--ahead", ahead, 0.0)
    with open_project(sets, reading=lease is None) as engine:
        found: Sequence[Item | Lease] = ()
        retry_after_s = 0.0
        if lease_s is None:
            found = engine.lending.find_due(k, source, ahead_s=ahead_s)
        else:
            lent = engine.lending.lend(k, lease_s, source, ahead_s=ahead_s)
            found, retry_after_s = lent.leases, lent.retry_after_s
        rows = [LeaseRows(engine.store, engine.settings).row(each) for each in found] if as_json else []
        burst = engine.current().budget.burst_requests
    if ahead_s == 0 and int(burst) <= len(found) < k:
        allowed = f"the budget allows {format_count(len(found), 'request')} now"
        print_note(
            f"{allowed}; for more, raise [budget] burst, or use --ahead for requests of the time to come"
        )
    for row in rows:
        print_json(row)
    for entry in () if as_json else found:
        print_data(entry.key)
    if retry_after_s > 0:
        print_note(f"more can be leased in {format_duration(retry_after_s)}")


def lease(
    action: Annotated[str, Argument(metavar="extend|release", help="What to do with the leases.")],
    file: Annotated[
        str, Argument(metavar="FILE", help="JSONL: item and lease, as 'due --json' prints them; - is stdin.")
    ] = "-",
    duration: Annotated[
        str, Option(metavar="10m", help="extend: the leases end after this time from now, or later.")
    ] = "10m",
    source: OfSource = None,
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Extend leases that 'due' gave, or give them back without a poll."""
    from afresh.values.items import display_key

    one_of("action", action, ("extend", "release"))
    duration_s = read_duration("--duration", duration, 0.0)
    leases = [_parse_lease(file, *line) for line in read_lines(file, "an object")]
    with open_project(sets) as engine:
        lending, source = engine.lending, known_source(engine, source)
        leases = [each._replace(source=each.source or source) for each in leases]
        ended = lending.extend(leases, duration_s) if action == "extend" else lending.release(leases)
    held = len(leases) - len(ended)
    if as_json:
        print_json({"held": held, "ended": list(ended)})
    for key in ended:
        print_note(f"{display_key(key)}: this lease had ended")
    print_note(f"{format_count(held, 'lease')} {action.removesuffix('e')}ed")
    if ended and not held:
        raise AfreshError("none of the leases was held any more")


def observe(
    file: Annotated[
        str,
        Argument(metavar="FILE", help="JSONL: item, lease, time, content, changed, status, …; - is stdin."),
    ] = "-",
    dbt: Annotated[
        str | None, Option(metavar="DIR", help="Learn from the last run of dbt, by its folder target.")
    ] = None,
    source: OfSource = None,
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Record polls that you made yourself: of leased items, or from old poll logs."""
    from afresh.engine.json_rows import answer_row

    if dbt is not None:
        observe_run(dbt, source, sets, as_json=as_json)
        return
    with open_project(sets) as engine:
        try:
            now_s, source = engine.clock.now_s(), known_source(engine, source)
            rows = [_parse_row(file, *line, now_s) for line in read_lines(file, "an object")]
            taken = engine.observe([replace(row, source=row.source or source) for row in rows])
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

    return parse_report(_parse_json(file, number, line), now_s, number)


def _parse_lease(file: str, number: int, line: str) -> LeaseKey:
    """Return the lease that a line states."""
    from afresh.engine.lending import LeaseKey

    given = _parse_json(file, number, line)
    fields = given if isinstance(given, dict) else {}
    key, token, source = (fields.get(name) for name in ("item", "lease", "source"))
    if not isinstance(key, str) or type(token) is not int or not isinstance(source, str | None):
        problem = "needs item, a text, and lease, a whole number, as 'due --lease … --json' prints them"
        raise InputError(problem, path=file, row=number, line=0)
    return LeaseKey(key, token, source)


def _parse_json(file: str, number: int, line: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", path=file, row=number, line=0) from None
    except RecursionError:
        raise InputError("is JSON with too many levels", path=file, row=number, line=0) from None
    except ValueError:  # Python reads whole numbers of up to 4,300 digits
        raise InputError("has a number with too many digits", path=file, row=number, line=0) from None
