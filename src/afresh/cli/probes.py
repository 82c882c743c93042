"""``afresh probes``: keyword queries that refresh a relation behind a search box, with few requests."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from afresh.cli.files import check_files
from afresh.cli.options import AsJson, Output, Plot
from afresh.cli.probes_options import (
    AllowPrivate,
    AnyAttribute,
    Delay,
    ElapsedColumn,
    FirstPage,
    KeyColumn,
    KeyPath,
    KeywordColumns,
    LookUp,
    Method,
    PageSize,
    Pool,
    ProxyFile,
    Quota,
    RateColumn,
    Relation,
    RowsPath,
    ServerPlace,
    Table,
    Term,
    TopK,
    TotalPath,
    UntilCovered,
    WeightColumn,
)
from afresh.cli.progress import Progress
from afresh.cli.summary import number, print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Kind
from afresh.values.errors import InputError, UsageError, one_of
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.cli.probes_run import Outcome

_COUNT: Kind = "count"
_METHODS = ("auto", "1", "2")
# Options that a live server's settings take under the same name.
_LIVE = (
    "relation",
    "key",
    "keywords",
    "server",
    "page_size",
    "limit",
    "look_up",
    "total",
    "rows",
    "key_path",
    "first_page",
    "term",
    "table",
    "delay",
    "allow_private",
)


def probes(
    relation: Relation,
    key: KeyColumn,
    keywords: KeywordColumns,
    server: ServerPlace,
    page_size: PageSize = 10,
    limit: TopK = None,
    any_attribute: AnyAttribute = False,
    method: Method = "auto",
    pool: Pool = 10,
    quota: Quota = None,
    until_covered: UntilCovered = False,
    proxy: ProxyFile = None,
    weight: WeightColumn = None,
    rate: RateColumn = None,
    elapsed: ElapsedColumn = None,
    look_up: LookUp = "",
    total: TotalPath = "total",
    rows: RowsPath = "results",
    key_path: KeyPath = "",
    first_page: FirstPage = 1,
    term: Term = "",
    table: Table = "",
    delay: Delay = "1s",
    allow_private: AllowPrivate = False,
    output: Output = None,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Which keyword queries refresh a relation behind a search box, with the fewest requests.

    The rows that come out are query, kind, page, requests, total, expected, new, covered: in order, with what
    was expected of each query and what it brought.
    """
    options = locals()
    _check_options(method, quota, until_covered, rate, elapsed)
    from afresh.cli.probes_files import read_world
    from afresh.cli.probes_live import LiveServer, is_live
    from afresh.cli.probes_run import Question, carry_out

    file, scoped = None if is_live(server) else server, not any_attribute
    check_files([relation.partition("#")[0], file, proxy], output, plot, as_json=as_json)
    with Progress("reading", 1.0) as progress:
        world = read_world(
            relation,
            file,
            proxy,
            key=key,
            keywords=keywords,
            scoped=scoped,
            columns=(weight, rate, elapsed),
            on_read=progress.reach,
        )
    given = {name: options[name] for name in _LIVE}
    live = LiveServer(given | {"scoped": scoped}, world.relation, world.keys) if file is None else None
    with Progress("asking", world.tuples) as progress, live or nullcontext():
        outcome = carry_out(world, Question(page_size, limit, method, pool, quota), progress.reach, live)
    _show(outcome, output, plot, as_json=as_json)
    if live is not None:
        _check_end(live.trouble, outcome)


def _check_end(trouble: str, outcome: Outcome) -> None:
    requests = outcome.summary["requests"]
    if trouble and not requests:
        raise InputError(f"the server gave nothing: {trouble}")
    if trouble:
        answered = format_count(requests, "request")
        words = f"after {answered} the server stopped: {trouble.rstrip('.')}"
        raise InputError(f"{words}; what came before is kept")


def _show(outcome: Outcome, output: str | None, plot: str | None, *, as_json: bool) -> None:
    if output is not None or not as_json:
        _write(output or "-", outcome)
    if plot is not None:
        _draw(plot, outcome)
    if as_json:
        print_json(outcome.summary)
    else:
        print_summary("keyword probes", _words(outcome.summary))


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
    from afresh.plots.line_plot import line_figure
    from afresh.plots.style import picture_format, render
    from afresh.tables.atomic_output import write_bytes

    write_bytes(path, render(line_figure([outcome.panel()]), picture_format(path)))


def _words(summary: dict[str, Any]) -> list[tuple[str, str]]:
    look_ups = format_count(summary["look_ups"], "look-up") + " by key"
    rows = [
        ("covered", _covered(summary)),
        (
            "requests",
            f"{summary['requests']:,} sent, of these {look_ups}; {number(summary['planned'])} planned",
        ),
        ("records per request", number(summary["speedup_ratio"])),
        ("bound", _bound(summary)),
    ]
    if summary["doubled"]:
        keys = format_count(summary["doubled"], "key")
        rows.append(("doubled", f"{keys} had more than one record in an answer: counted once"))
    if summary["untold"]:
        pages = format_count(summary["untold"], "page")
        rows.append(("totals", f"{pages} had no number of results where --total says it is"))
    if summary["cut_short"]:
        queries = format_count(summary["cut_short"], "query")
        rows.append(("cut short", f"{queries} had no new records left long before the total reported"))
    return rows


def _covered(summary: dict[str, Any]) -> str:
    if not summary["tuples"]:
        return "nothing: the relation has no records"
    words = f"{summary['covered']:,} of {format_count(summary['tuples'], 'record')}"
    if summary["missing"]:
        words += f"; {format_count(summary['missing'], 'record')} not on the server"
    if summary["worthless"]:
        words += f"; {format_count(summary['worthless'], 'record')} of weight 0 not asked for"
    return words


def _bound(summary: dict[str, Any]) -> str:
    """What the bound is of, and how sure it is."""
    if summary["quota"] is not None:
        what = "the quota" if summary["method"] == "auto" else "as many requests"
        words = f"{summary['bound_of']}: the most that {what} could bring"
    else:
        words = "requests that a plan sure to cover all needs at least"
        if summary["requests"] < summary["bound"]:
            words += "; fewer were sent, since records had come by other ways"
    guessed = "; by estimated totals, no proof" if summary["totals"] == "estimated" else ""
    return f"{number(summary['bound'])} {words}{guessed}"
