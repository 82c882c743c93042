"""``afresh due`` and ``afresh observe``, for programs that fetch items themselves and report the result."""

from __future__ import annotations

import base64
import json
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from afresh.cli.engine.project import SetOptions, open_project
from afresh.cli.files import read_lines
from afresh.cli.options import PrintJson, parse_moment, read_duration
from afresh.cli.summary import print_data, print_json, print_note
from afresh.values.clock import SystemClock
from afresh.values.errors import AfreshError, InputError, UsageError
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.engine.external_polls import Reported


def due(
    k: Annotated[int, Option(metavar="N", help="List at most N items.", min=1)] = 100,
    lease: Annotated[str | None, Option(metavar="10m", help="Lease the items to you for this time.")] = None,
    source: Annotated[str | None, Option(metavar="NAME", help="List only items of this source.")] = None,
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """List the items to poll now, as many as the budget allows; those whose polls gain most come first."""
    lease_s = None if lease is None else read_duration("--lease", lease, 0.0)
    with open_project(sets, reading=lease is None) as engine:
        found = engine.due(k, lease_s=lease_s, source=source)
        burst = engine.current().budget.burst_requests
    if len(found) < k and len(found) >= int(burst):
        words = (
            f"the budget allows {format_count(len(found), 'request')} now; [budget] burst allows more at once"
        )
        print_note(words)
    for entry in found:
        if not as_json:
            print_data(entry.key)
            continue
        row: dict[str, Any] = {"item": entry.key, "source": entry.source, "group": entry.group}
        token = getattr(entry, "token", None)
        if token is not None:
            row |= {"lease": token, "until": getattr(entry, "until_s", None)}
        print_json(row)


def observe(
    file: Annotated[
        str, Argument(metavar="FILE", help="JSONL: item, time, changed or content, lease; - is stdin.")
    ] = "-",
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Record polls that you made yourself: of leased items, or from old poll logs."""
    with open_project(sets) as engine:
        try:
            taken = engine.observe([_parse_row(file, *line) for line in read_lines(file, "an object")])
        except InputError as error:
            raise InputError(error.problem, path=file, row=error.row, line=0) from None
    if as_json:
        print_json({"taken": taken.taken, "known": taken.known, "refused": list(taken.refused)})
    for problem in taken.refused:
        print_note(f"not kept: {problem}")
    known = f"; {taken.known:,} already known" if taken.known else ""
    print_note(f"{format_count(taken.taken, 'observation')} taken{known}")
    if taken.refused and not taken.taken and not taken.known:
        raise AfreshError("none of the rows could be taken")


def _parse_row(file: str, number: int, line: str) -> Reported:
    from afresh.engine.external_polls import Reported

    try:
        given = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", path=file, row=number, line=0) from None
    except RecursionError:
        raise InputError("is JSON with too many levels", path=file, row=number, line=0) from None
    except ValueError:  # Python reads whole numbers of up to 4,300 digits
        raise InputError("has a number with too many digits", path=file, row=number, line=0) from None
    row = _ObservedRow(file, number, given if isinstance(given, dict) else {})
    if not isinstance(row.given.get("item"), str):
        raise row.fault("must be an object with an item")
    return Reported(
        row.given["item"],
        row.time_s(),
        changed=row.changed(),
        content=row.content(),
        media_type=str(row.given.get("media_type", "")),
        lease=row.lease(),
        row=number,
    )


def _shown(value: object) -> str:
    """Return a wrong value for a message, cut if it is long."""
    try:
        text = repr(value)
    except RecursionError:
        return "a value with many levels"
    return text if len(text) <= 100 else f"{text[:99]}…"


@dataclass(frozen=True, slots=True)
class _ObservedRow:
    """One JSON object of the file. Each method returns one field, or raises ``InputError`` with the number of
    the line; ``fault`` returns this error."""

    file: str
    number: int
    given: dict[str, Any]

    def fault(self, problem: str) -> InputError:
        return InputError(problem, path=self.file, row=self.number, line=0)

    def time_s(self) -> float:
        given = self.given.get("time")
        if given is None:
            return SystemClock().now_s()
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            with suppress(OverflowError):  # a whole number beyond every float
                if math.isfinite(given):
                    return float(given)
        if isinstance(given, str):
            with suppress(UsageError):  # the error below names the row
                return parse_moment("time", given) or 0.0
        raise self.fault(f"time is {_shown(given)}: give Unix seconds or ISO 8601")

    def changed(self) -> bool | None:
        given = self.given.get("changed")
        if given is None or given in (0, 1):  # False == 0 and True == 1
            return None if given is None else bool(given)
        raise self.fault(f"changed is {_shown(given)}: give true or false")

    def lease(self) -> int | None:
        given = self.given.get("lease")
        if given is None or (isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**63):
            return given
        raise self.fault(f"lease is {_shown(given)}: give the number that 'due' gave")

    def content(self) -> bytes | None:
        for name in ("content", "content_base64"):
            if not isinstance(self.given.get(name), str | None):
                raise self.fault(f"{name} is {_shown(self.given[name])}: give text")
        text, packed = self.given.get("content"), self.given.get("content_base64")
        if text is not None:
            return str(text).encode(errors="replace")
        try:
            return None if packed is None else base64.b64decode(packed, validate=True)
        except ValueError as error:
            raise self.fault(f"content_base64 is not base64: {error}") from None
