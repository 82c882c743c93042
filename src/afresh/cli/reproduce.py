"""``afresh reproduce``: what the papers print, what afresh computes, and whether the two agree."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.papers.registry import ON_HISTORIES, ON_RECORDS, PAPERS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from afresh.papers.cho.cho_figures import ChangeLog
    from afresh.papers.report import Check, PaperFigure, Report, Section
    from afresh.papers.yang.probe_experiments import SearchRecords

_COLOURS = {"agrees": "green", "differs": "yellow", "unexplained": "bold red"}


def reproduce(
    papers: Annotated[
        list[str] | None,
        typer.Argument(metavar="PAPER", help=f"{', '.join(PAPERS)}; all if none is named."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report with every figure to FILE.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Histories, NAME.changes.csv, and records, papers*.csv, movies*.csv, for figures.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one object on stdout instead of tables.")
    ] = False,
) -> None:
    """Recompute the papers' tables and figures, beside what they print.

    Exits with 1 if a number differs from the printed one without a known reason.
    """
    from afresh.papers.registry import reproduce as recompute
    from afresh.papers.report import CheckVerdict
    from afresh.tables.atomic_output import check_writable

    if html is not None:
        check_writable(html)
    reports = recompute(papers or (), _histories(data, papers or PAPERS), _records(data, papers or PAPERS))
    if html is not None:
        _write_page(html, reports)
    if as_json:
        typer.echo(json.dumps({"papers": [_summary(report) for report in reports]}, ensure_ascii=False))
    else:
        _print_tables(reports)
    if any(report.count(CheckVerdict.UNEXPLAINED) for report in reports):
        raise typer.Exit(1)


def _histories(folder: Path | None, papers: Iterable[str]) -> Sequence[ChangeLog]:
    if folder is None or not set(papers) & set(ON_HISTORIES):
        return ()
    from afresh.cli.histories import read_histories

    return read_histories(folder)


def _records(folder: Path | None, papers: Iterable[str]) -> Sequence[SearchRecords]:
    if folder is None or not set(papers) & set(ON_RECORDS):
        return ()
    from afresh.cli.record_files import read_records

    return read_records(folder)


def _write_page(path: Path, reports: Sequence[Report]) -> None:
    from afresh.papers.page import html_page, inline_svg
    from afresh.tables.atomic_output import write_bytes

    write_bytes(path, html_page(reports, inline_svg).encode())


def _summary(report: Report) -> dict[str, object]:
    from afresh.papers.report import CheckVerdict

    checks = [
        {"section": section.title} | _fields(check) for section in report.sections for check in section.checks
    ]
    counts = {verdict.value: report.count(verdict) for verdict in CheckVerdict}
    figures = [figure.name for figure in report.figures]
    return (
        {"paper": report.key, "citation": report.citation} | counts | {"figures": figures, "checks": checks}
    )


def _fields(check: Check) -> dict[str, object]:
    return {
        "name": check.name,
        "printed": check.printed_text,
        "recomputed": check.recomputed if math.isfinite(check.recomputed) else None,
        "unit": check.unit,
        "verdict": check.verdict.value,
        "reason": check.reason,
    }


def _print_tables(reports: Sequence[Report]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for report in reports:
        console.rule(f"[bold]{report.citation}", style="dim")
        for section in report.sections:
            _print_section(console, section)
        for figure in report.figures:
            _print_figure(console, figure)
    for report in reports:
        _print_count(console, report)


def _print_section(console: Console, section: Section) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print()
    console.print(Text(section.title, style="bold"))
    if section.note:
        console.print(Padding(Text(section.note, style="dim"), (0, 0, 0, 2)))
    console.print(_table(section.checks))


def _print_figure(console: Console, figure: PaperFigure) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print()
    console.print(Text(f"{figure.name}: {figure.title}", style="bold"))
    console.print(Padding(Text(figure.ours_shows), (0, 0, 0, 2)))


def _table(checks: Sequence[Check]) -> Table:
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
