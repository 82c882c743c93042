"""``afresh probes``: keyword queries that refresh a relation behind a search box, with few requests."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.files import check_files
from afresh.cli.options import AsJson, Output, Plot
from afresh.cli.progress import Progress
from afresh.cli.summary import number, print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Kind
from afresh.values.errors import InputError, UsageError, one_of

if TYPE_CHECKING:
    from afresh.cli.probes_run import Outcome

_COUNT: Kind = "count"
_METHODS = ("auto", "1", "2")


def probes(
    relation: Annotated[
        str,
        typer.Argument(
            metavar="RELATION",
            help="Local records: CSV, Parquet or JSONL, also .gz or .zst; FILE.db#TABLE is a SQLite table.",
        ),
    ],
    key: Annotated[str, typer.Option(metavar="COLUMN", help="The column that identifies a record.")],
    keywords: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN[:SEP]",
            help="A column of keywords: words, or with :SEP whole values split by SEP. May repeat.",
        ),
    ],
    server: Annotated[
        str,
        typer.Option(
            metavar="FILE|URL",
            help="The server's records, with the same columns, to ask; or where to ask: a web address with "
            "{query} and {page}, sqlite:PATH, postgresql://…",
        ),
    ],
    page_size: Annotated[int, typer.Option(min=1, metavar="N", help="Results on a page.")] = 10,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="Most results that the server gives for a query.")
    ] = None,
    any_attribute: Annotated[
        bool, typer.Option("--any-attribute", help="The server finds a keyword in any of the columns.")
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            metavar="auto|1|2",
            help="auto: fewest requests. The paper's greedy: 1 reads all pages, 2 the first.",
        ),
    ] = "auto",
    pool: Annotated[
        int, typer.Option(min=1, metavar="K", help="Frequent keywords the paper's greedy chooses from.")
    ] = 10,
    quota: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after N requests (methods 1, 2: queries).")
    ] = None,
    until_covered: Annotated[
        bool, typer.Option("--until-covered", help="Ask until every record is covered (the default).")
    ] = False,
    proxy: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Records like the server's: totals are then estimated from them."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Importance of each record; 1 if not given.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Changes per time of each record, with --elapsed.")
    ] = None,
    elapsed: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Time since each record was refreshed.")
    ] = None,
    look_up: Annotated[
        str, typer.Option(metavar="URL", help="Live: the address of one record, with {key}.")
    ] = "",
    total: Annotated[str, typer.Option(metavar="PATH", help="Live: where the total is, in JSON.")] = "total",
    rows: Annotated[str, typer.Option(metavar="PATH", help="Live: where the results are.")] = "results",
    key_path: Annotated[str, typer.Option(metavar="PATH", help="Live: where the key is in a result.")] = "",
    first_page: Annotated[int, typer.Option(min=0, metavar="N", help="Live: the number of page one.")] = 1,
    term: Annotated[
        str, typer.Option(metavar="TEXT", help="Live: how a keyword is written, of {attribute} and {text}.")
    ] = "",
    table: Annotated[str, typer.Option(metavar="NAME", help="Live: the table to search in a database.")] = "",
    delay: Annotated[str, typer.Option(metavar="TIME", help="Live: least time between requests.")] = "1s",
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Live: allow private and loopback addresses.")
    ] = False,
    output: Output = None,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Which keyword queries refresh a relation behind a search box, with the fewest requests.

    The rows that come out are query, kind, page, requests, total, expected, new, covered: in order, with what
    was expected of each query and what it brought.
    """
    _check_options(method, quota, until_covered, rate, elapsed)
    from afresh.cli.probes_files import read_world
    from afresh.cli.probes_live import LiveServer, is_live
    from afresh.cli.probes_run import Question, carry_out

    asked = is_live(server)
    check_files([relation.partition("#")[0], None if asked else server, proxy], output, plot, as_json=as_json)
    question = Question(page_size, limit, method, pool, quota)
    with Progress("reading", 1.0) as progress:
        world = read_world(
            relation,
            None if asked else server,
            proxy,
            key=key,
            keywords=keywords,
            scoped=not any_attribute,
            columns=(weight, rate, elapsed),
            on_read=progress.reach,
        )
    live = None
    if asked:
        given: dict[str, Any] = {
            "relation": relation,
            "key": key,
            "keywords": keywords,
            "server": server,
            "page_size": page_size,
            "limit": limit,
            "scoped": not any_attribute,
            "look_up": look_up,
            "total": total,
            "rows": rows,
            "key_path": key_path,
            "first_page": first_page,
            "term": term,
            "table": table,
            "delay": delay,
            "allow_private": allow_private,
        }
        live = LiveServer(given, world.relation, world.keys)
    with Progress("asking", world.tuples) as progress, live or nullcontext():
        outcome = carry_out(world, question, progress.reach, live)
    if output is not None or not as_json:
        _write(output or "-", outcome)
    if plot is not None:
        _draw(plot, outcome)
    if as_json:
        print_json(outcome.summary)
    else:
        print_summary("keyword probes", _words(outcome.summary))
    if live is not None and live.trouble:
        answered = f"{outcome.summary['requests']:,} requests"
        raise InputError(f"after {answered} the server stopped: {live.trouble}; what came before is kept")


def _check_options(
    method: str, quota: int | None, until_covered: bool, rate: str | None, elapsed: str | None
) -> None:
    one_of("method", method, _METHODS)
    if quota is not None and until_covered:
        raise UsageError("--quota and --until-covered: give one, either ends the asking")
    if (rate is None) != (elapsed is None):
        raise UsageError("--rate and --elapsed belong together: the expected lag is ½·rate·elapsed²")


def _write(path: str, outcome: Outcome) -> None:
    from afresh.tables.writing import write_table

    kinds: dict[str, Kind] = {
        "query": TEXT,
        "kind": TEXT,
        "page": _COUNT,
        "requests": _COUNT,
        "total": _COUNT,
        "expected": NUMBER,
        "new": _COUNT,
        "covered": _COUNT,
    }
    write_table(path, kinds, outcome.rows)


def _draw(path: str, outcome: Outcome) -> None:
    from afresh.plots.lines import line_figure
    from afresh.plots.style import picture_format, render
    from afresh.tables.aside import write_bytes

    write_bytes(path, render(line_figure([outcome.panel()]), picture_format(path)))


def _words(summary: dict[str, Any]) -> list[tuple[str, str]]:
    covered = f"{summary['covered']:,} of {summary['tuples']:,} records"
    if summary["missing"]:
        covered += f"; {summary['missing']:,} are not on the server"
    bound = "no sure plan needs fewer" if summary["quota"] is None else "most that the quota could bring"
    return [
        ("covered", covered),
        ("requests", f"{summary['requests']:,}, of these {summary['look_ups']:,} look-ups by key"),
        ("records per request", number(summary["speedup_ratio"])),
        ("bound", f"{number(summary['bound'])}: {bound}"),
    ]
