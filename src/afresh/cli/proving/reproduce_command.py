"""``afresh reproduce`` recomputes the papers' numbers and reports whether they agree with the papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from afresh.cli.files import load_matplotlib
from afresh.cli.summary import print_json
from afresh.papers.registry import ON_HISTORIES, ON_RECORDS, PAPERS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from afresh.papers.cho.cho_figures import ChangeLog
    from afresh.papers.report import Check, Report
    from afresh.papers.yang.probe_experiments import SearchRecords

_COLOURS = {"agrees": "green", "differs": "yellow", "unexplained": "bold red"}


def reproduce(
    papers: Annotated[
        list[str] | None, Argument(metavar="PAPER", help=f"{', '.join(PAPERS)}; all if none is named.")
    ] = None,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Write a report with every figure to FILE.")
    ] = None,
    data: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Histories, NAME.changes.csv, and records, papers*.csv, movies*.csv, for figures.",
        ),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print one object on stdout instead of tables.")] = False,
) -> None:
    """Recompute the papers' tables and figures, beside what they print.

    Exits with 1 if a number differs from the printed one without a known reason.
    """
    from afresh.papers.registry import reproduce as recompute
    from afresh.papers.report import CheckVerdict
    from afresh.tables.atomic_output import check_writable, write_bytes

    if html is not None:
        load_matplotlib("the report")
        check_writable(html)
    reports = recompute(papers or (), *_read_data(data, set(papers or PAPERS)))
    if html is not None:
        from afresh.papers.page import html_page, inline_svg

        write_bytes(html, html_page(reports, inline_svg).encode())
    if as_json:
        print_json({"papers": [_summary(report) for report in reports]})
    else:
        _print_tables(reports)
    if any(report.count(CheckVerdict.UNEXPLAINED) for report in reports):
        raise typer.Exit(1)


def _read_data(folder: Path | None, papers: set[str]) -> tuple[Sequence[ChangeLog], Sequence[SearchRecords]]:
    """Return a tuple (histories, records) of ``folder``. Each is empty if none of the ``papers`` uses it."""
    if folder is None:
        return (), ()
    from afresh.cli.proving.paper_data import read_histories, read_records

    return (
        read_histories(folder) if papers & set(ON_HISTORIES) else (),
        read_records(folder) if papers & set(ON_RECORDS) else (),
    )


def _summary(report: Report) -> dict[str, object]:
    from afresh.papers.report import CheckVerdict

    checks = [
        {
            "section": section.title,
            "name": check.name,
            "printed": check.printed_text,
            "recomputed": check.recomputed,
            "unit": check.unit,
            "verdict": check.verdict.value,
            "reason": check.reason,
        }
        for section in report.sections
        for check in section.checks
    ]
    counts = {verdict.value: report.count(verdict) for verdict in CheckVerdict}
    figures = [figure.name for figure in report.figures]
    return (
        {"paper": report.key, "citation": report.citation} | counts | {"figures": figures, "checks": checks}
    )


def _print_tables(reports: Sequence[Report]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for report in reports:
        console.rule(f"[bold]{report.citation}", style="dim")
        for section in report.sections:
            _print_paragraph(console, section.title, section.note, "dim")
            console.print(_check_table(section.checks))
        for figure in report.figures:
            _print_paragraph(console, f"{figure.name}: {figure.title}", figure.ours_shows)
    for report in reports:
        _print_count(console, report)


def _print_paragraph(console: Console, title: str, text: str, style: str = "") -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print()
    console.print(Text(title, style="bold"))
    if text:
        console.print(Padding(Text(text, style=style), (0, 0, 0, 2)))


def _check_table(checks: Sequence[Check]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=True, header_style="dim", show_edge=False)
    table.add_column("what", ratio=4, min_width=18)
    table.add_column("printed", justify="right", no_wrap=True)
    table.add_column("recomputed", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("verdict", ratio=5, min_width=20)
    for check in checks:
        verdict = Text(check.verdict.value, style=_COLOURS[check.verdict.value])
        if check.reason:
            verdict.append(f": {check.reason}", style="default")
        table.add_row(check.name, check.printed_text, check.recomputed_text, check.unit, verdict)
    return table


def _print_count(console: Console, report: Report) -> None:
    from rich.text import Text

    from afresh.papers.report import CheckVerdict

    line = Text(f"{report.key}: ")
    words = {
        CheckVerdict.AGREES: "agree",
        CheckVerdict.DIFFERS: "differ for a known reason",
        CheckVerdict.UNEXPLAINED: "differ unexplained",
    }
    for verdict, text in words.items():
        count = report.count(verdict)
        line.append(f"{count} {text}", style=_COLOURS[verdict.value] if count else "dim")
        line.append("." if verdict is CheckVerdict.UNEXPLAINED else ", ")
    console.print(line)
