"""``afresh due`` and ``afresh observe``: for those who fetch themselves."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.engine_project import ListJson, Sets, open_project
from afresh.cli.options import read_duration
from afresh.cli.summary import print_json
from afresh.values.errors import AfreshError, InputError, UsageError
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.engine.external_polls import Reported


def due(
    k: Annotated[int, typer.Option("--k", metavar="N", help="How many at most.", min=1)] = 100,
    lease: Annotated[
        str | None,
        typer.Option("--lease", metavar="10m", help="Lend them to you for so long."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="Only of this source.")
    ] = None,
    sets: Sets = None,
    as_json: ListJson = False,
) -> None:
    """The items due now, longest due first."""
    lease_s = None if lease is None else read_duration("--lease", lease, 0.0)
    with open_project(sets, reading=lease is None) as engine:
        found = engine.due(k, lease_s=lease_s, source=source)
    for entry in found:
        if not as_json:
            typer.echo(entry.key)
            continue
        row: dict[str, Any] = {"item": entry.key, "source": entry.source, "group": entry.group}
        token = getattr(entry, "token", None)
        if token is not None:
            row |= {"lease": token, "until": getattr(entry, "until_s", None)}
        print_json(row)


def observe(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSONL: item, time, changed or content, lease; - is stdin."),
    ] = "-",
    sets: Sets = None,
    as_json: ListJson = False,
) -> None:
    """Take back what you found: polls of leased items, and old poll logs."""
    with open_project(sets) as engine:
        try:
            taken = engine.observe(list(_rows(file)))
        except InputError as error:
            raise InputError(error.problem, path=file, row=error.row, line=0) from None
    if as_json:
        print_json({"taken": taken.taken, "known": taken.known, "refused": list(taken.refused)})
    for words in taken.refused:
        typer.echo(f"not kept: {words}", err=True)
    known = f"; {taken.known:,} already known" if taken.known else ""
    typer.echo(f"{format_count(taken.taken, 'observation')} taken{known}", err=True)
    if taken.refused and not taken.taken and not taken.known:
        raise AfreshError("none of the rows could be taken")


def _rows(file: str) -> Iterator[Reported]:
    try:
        with nullcontext(sys.stdin) if file == "-" else Path(file).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _row(file, number, line)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text with an object a line", path=file) from None


def _row(file: str, number: int, line: str) -> Reported:
    from afresh.engine.external_polls import Reported

    try:
        given = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", path=file, row=number, line=0) from None
    if not isinstance(given, dict) or not isinstance(given.get("item"), str):
        raise InputError("must be an object with an item", path=file, row=number, line=0)
    return Reported(
        given["item"],
        _time(file, number, given.get("time")),
        changed=_changed(file, number, given.get("changed")),
        content=_content(file, number, given),
        media_type=str(given.get("media_type", "")),
        lease=_lease(file, number, given.get("lease")),
        row=number,
    )


def _time(file: str, number: int, given: object) -> float:
    from afresh.cli.moments import parse_moment

    if given is None:
        from afresh.values.clock import SystemClock

        return SystemClock().now_s()
    if isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given):
        return float(given)
    if isinstance(given, str):
        with suppress(UsageError):
            moment = parse_moment("time", given)
            if moment is not None:
                return moment
    raise InputError(f"time is {given!r}: give Unix seconds or ISO 8601", path=file, row=number, line=0)


def _changed(file: str, number: int, given: object) -> bool | None:
    if given is None or isinstance(given, bool):
        return given
    if given in (0, 1):
        return bool(given)
    raise InputError(f"changed is {given!r}: give true or false", path=file, row=number, line=0)


def _lease(file: str, number: int, given: object) -> int | None:
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    raise InputError(f"lease is {given!r}: give the number that 'due' gave", path=file, row=number, line=0)


def _content(file: str, number: int, given: dict[str, Any]) -> bytes | None:
    text, packed = given.get("content"), given.get("content_base64")
    for name, value in (("content", text), ("content_base64", packed)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"{name} is {value!r}: give text", path=file, row=number, line=0)
    if text is not None:
        return str(text).encode(errors="replace")
    try:
        return None if packed is None else base64.b64decode(packed, validate=True)
    except ValueError as error:
        raise InputError(f"content_base64 is not base64: {error}", path=file, row=number, line=0) from None
