"""``afresh probes`` finds keyword queries that refresh records behind a search box with few requests."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from afresh.cli.files import check_files, choose_output, write_picture
from afresh.cli.options import AsJson, Output, Plot, with_option_groups
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import format_number, print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Kind
from afresh.values.errors import InputError, UsageError, one_of
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.cli.planning.probe_run import ProbeOutcome

_LIVE_BULK = 50
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("query", "kind"), TEXT),
    **dict.fromkeys(("page", "requests", "total"), "count"),
    "expected": NUMBER,
    **dict.fromkeys(("new", "covered"), "count"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The options of ``afresh probes`` that are also settings of a search source, with the same names."""

    relation: Annotated[
        str,
        Argument(
            metavar="RELATION",
            help="Local records: CSV, Parquet or JSONL, also .gz or .zst; or a table: FILE.db#TABLE of "
            "SQLite, postgresql://…#TABLE.",
        ),
    ]
    key: Annotated[str, Option(metavar="COLUMN", help="The column that identifies a record.")]
    keywords: Annotated[
        list[str],
        Option(
            metavar="COLUMN[:SEP]",
            help="A column of keywords: words, or with :SEP whole values split by SEP. May repeat.",
        ),
    ]
    server: Annotated[
        str,
        Option(
            metavar="FILE|URL",
            help="The server's records, with the same columns, to ask; or where to ask: a web address with "
            "{query} and {page}, sqlite:PATH, postgresql://…",
        ),
    ]
    page_size: Annotated[int, Option(min=1, metavar="N", help="Results on a page.")] = 10
    limit: Annotated[
        int | None, Option(min=1, metavar="K", help="Most results that the server gives for a query.")
    ] = None
    look_up: Annotated[str, Option(metavar="URL", help="Live: the address of one record, with {key}.")] = ""
    bulk_look_up: Annotated[
        str, Option(metavar="URL", help="Live: the address of several records, with {keys}.")
    ] = ""
    bulk: Annotated[
        int | None, Option(min=1, metavar="N", help="Records that one look-up can name: 1; live 50.")
    ] = None
    keys_joined_by: Annotated[str, Option(metavar="TEXT", help="Live: what stands between keys.")] = "|"
    next: Annotated[
        str, Option(metavar="PATH", help="Live: where the token of the next page is, for {next}.")
    ] = ""
    first_next: Annotated[str, Option(metavar="TEXT", help="Live: the token of the first page.")] = ""
    total: Annotated[str, Option(metavar="PATH", help="Live: where the total is, in JSON.")] = "total"
    rows: Annotated[str, Option(metavar="PATH", help="Live: where the results are.")] = "results"
    key_path: Annotated[str, Option(metavar="PATH", help="Live: where the key is in a result.")] = ""
    key_pattern: Annotated[
        str, Option(metavar="REGEX", help="Live: which part of a key counts; its first group.")
    ] = ""
    first_page: Annotated[int, Option(min=0, metavar="N", help="Live: the number of page one.")] = 1
    term: Annotated[
        str, Option(metavar="TEXT", help="Live: how a keyword is written, of {attribute} and {text}.")
    ] = ""
    table: Annotated[str, Option(metavar="NAME", help="Live: the table to search in a database.")] = ""
    delay: Annotated[str, Option(metavar="TIME", help="Live: least time between requests.")] = "1s"
    allow_private: Annotated[
        bool, Option("--allow-private", help="Live: allow private and loopback addresses.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions(ServerOptions):
    """All options of ``afresh probes``."""

    any_attribute: Annotated[
        bool, Option("--any-attribute", help="The server finds a keyword in any of the columns.")
    ] = False
    method: Annotated[
        str,
        Option(
            metavar="auto|1|2",
            help="auto: fewest requests. The paper's greedy: 1 reads all pages, 2 the first.",
        ),
    ] = "auto"
    pool: Annotated[
        int, Option(min=1, metavar="K", help="Frequent keywords the paper's greedy chooses from.")
    ] = 10
    quota: Annotated[
        int | None, Option(min=1, metavar="N", help="Stop after N requests (methods 1, 2: queries).")
    ] = None
    until_covered: Annotated[
        bool, Option("--until-covered", help="Ask until every record is covered (the default).")
    ] = False
    proxy: Annotated[
        str | None,
        Option(metavar="FILE", help="Records like the server's: totals are then estimated from them."),
    ] = None
    weight: Annotated[
        str | None, Option(metavar="COLUMN", help="Importance of each record; 1 if not given.")
    ] = None
    rate: Annotated[
        str | None, Option(metavar="COLUMN", help="Changes per time of each record, with --elapsed.")
    ] = None
    elapsed: Annotated[str | None, Option(metavar="COLUMN", help="Time since each record was refreshed.")] = (
        None
    )
    output: Output = None
    as_json: AsJson = False
    plot: Plot = None

    def check(self) -> None:
        """Raise ``UsageError`` if options contradict each other; check that the files can be used."""
        one_of("method", self.method, ("auto", "1", "2"))
        if self.quota is not None and self.until_covered:
            raise UsageError("--quota and --until-covered: give one, either ends the asking")
        if self.is_live and self.bulk is not None and not self.bulk_look_up:
            raise UsageError("--bulk: a live server needs --bulk-look-up, the address with {keys}")
        if (self.rate is None) != (self.elapsed is None):
            raise UsageError("--rate and --elapsed belong together: the expected lag is ½·rate·elapsed²")
        inputs = [self.relation.partition("#")[0], None if self.is_live else self.server, self.proxy]
        check_files(inputs, self.output, self.plot, as_json=self.as_json)

    @property
    def keys_at_once(self) -> int:
        """How many records one look-up can name."""
        if self.is_live and not self.bulk_look_up:
            return 1
        return self.bulk or (_LIVE_BULK if self.is_live else 1)

    @property
    def is_live(self) -> bool:
        """Whether ``server`` is queried over HTTP or in a database. Otherwise it is a file of its records."""
        return "://" in self.server or self.server.startswith(("sqlite:", "env:"))


@with_option_groups
def probes(options: ProbeOptions) -> None:
    """Find the keyword queries that refresh records behind a search box with the fewest requests.

    The output has the columns query, kind, page, requests, total, expected, new, covered, in the order of the
    requests; expected and new are the numbers of new records that were expected and found.
    """
    options.check()
    from afresh.cli.planning.probe_inputs import LiveServer, read_world
    from afresh.cli.planning.probe_run import plan_and_ask

    with ProgressBar("reading", 1.0) as progress:
        world = read_world(options, progress.reach)
    live = LiveServer(options, world) if options.is_live else None
    with ProgressBar("asking", world.tuples) as progress, live or nullcontext():
        outcome = plan_and_ask(world, options, progress.reach, live)
    _show(outcome, options)
    if live is not None and live.trouble:
        if not (requests := outcome.summary["requests"]):
            raise InputError(f"the server gave nothing: {live.trouble}")
        words = f"after {format_count(requests, 'request')} the server stopped: {live.trouble.rstrip('.')}"
        raise InputError(f"{words}; what came before is kept")


def _show(outcome: ProbeOutcome, options: ProbeOptions) -> None:
    from afresh.plots.line_plot import line_figure
    from afresh.tables.writing import write_table

    if (target := choose_output(options.output, as_json=options.as_json)) is not None:
        write_table(target, _KINDS, outcome.rows)
    if options.plot is not None:
        write_picture(options.plot, line_figure([outcome.panel()]))
    if options.as_json:
        print_json(outcome.summary)
    else:
        print_summary("keyword probes", _summary_rows(outcome.summary))


def _summary_rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    look_ups = format_count(summary["look_ups"], "look-up") + " by key"
    if summary["bulk_look_ups"]:
        look_ups += f", {summary['bulk_look_ups']:,} of them for several keys"
    planned = f"{format_number(summary['planned'])} planned"
    rows = [
        ("covered", _describe_coverage(summary)),
        ("requests", f"{summary['requests']:,} sent, of these {look_ups}; {planned}"),
        ("records per request", format_number(summary["speedup_ratio"])),
        ("bound", _describe_bound(summary)),
    ]
    for field, title, unit, text in (
        ("doubled", "doubled", "key", "had more than one record in an answer: counted once"),
        ("untold", "totals", "page", "had no number of results where --total says it is"),
        ("cut_short", "cut short", "query", "had no new records left long before the total reported"),
    ):
        if summary[field]:
            rows.append((title, f"{format_count(summary[field], unit)} {text}"))
    return rows


def _describe_coverage(summary: dict[str, Any]) -> str:
    if not summary["tuples"]:
        return "nothing: the relation has no records"
    words = f"{summary['covered']:,} of {format_count(summary['tuples'], 'record')}"
    if summary["missing"]:
        words += f"; {format_count(summary['missing'], 'record')} not on the server"
    if summary["worthless"]:
        words += f"; {format_count(summary['worthless'], 'record')} of weight 0 not asked for"
    return words


def _describe_bound(summary: dict[str, Any]) -> str:
    """Describe the bound and whether it is proven. The bound is the smallest number of requests that covers
    all records or, with a quota, the most that the quota could cover."""
    if summary["quota"] is not None:
        what = "the quota" if summary["method"] == "auto" else "as many requests"
        words = f"{summary['bound_of']}: the most that {what} could bring"
    else:
        words = "requests that a plan sure to cover all needs at least"
        if summary["requests"] < summary["bound"]:
            words += "; fewer were sent, since records had come by other ways"
    guessed = "; by estimated totals, no proof" if summary["totals"] == "estimated" else ""
    return f"{format_number(summary['bound'])} {words}{guessed}"
