"""Reports as one self-contained HTML page: no script, nothing loaded, fit for light, dark and paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from afresh.papers.check import Check, CheckVerdict
from afresh.papers.figure import PaperFigure
from afresh.papers.report import Report, Section

_TITLE = "The papers, recomputed by afresh"

_STYLE = """
:root { --ink: #1f2328; --soft: #59636e; --line: #d5dae0; --paper: #ffffff; --card: #f6f8fa;
  --good: #116329; --known: #7d4e00; --bad: #b4131f; --link: #0550ae; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #a2abb5; --line: #3b424b;
  --paper: #14171b; --card: #1c2026; --good: #6fdc8c; --known: #f2b84b; --bad: #ff8d86; --link: #7cb7ff;
  --series-0: #4aa8e0; --series-1: #ff8a4c; --series-2: #2fc79a; --series-3: #e29cc4; --series-4: #f0b93a;
  --series-5: #8fd0f5; } }
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --card: #fff;
  --good: #116329; --known: #7d4e00; --bad: #b4131f; --link: #000; }
  html { font-size: 80%; } main { max-width: none; padding: 0; } nav { border: 0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.4rem; margin: 3.5rem 0 .5rem; padding-top: 1rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.05rem; margin: 2rem 0 .4rem; break-after: avoid; }
p { margin: .4rem 0; max-width: 46rem; } .soft { color: var(--soft); }
a { color: var(--link); }
nav { columns: 18rem; margin: 1.5rem 0; padding: 1rem 1.25rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; font-size: .92rem; }
nav strong { display: block; break-after: avoid; } nav ul { margin: 0 0 .8rem; padding-left: 1.1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { font-weight: 600; color: var(--soft); } tr { break-inside: avoid; }
.checks th:first-child { width: 40%; } .checks th:last-child { width: 34%; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-right: 1.4rem; }
.agrees { color: var(--good); } .differs { color: var(--known); } .unexplained { color: var(--bad);
  font-weight: 600; }
figure { margin: 1.2rem 0 2.2rem; padding: 1rem; border: 1px solid var(--line); border-radius: 8px;
  background: var(--card); break-inside: avoid; }
figure svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
figcaption { margin-top: .6rem; font-size: .92rem; } figcaption p { max-width: none; }
"""


def html_page(reports: Sequence[Report], draw: Callable[[PaperFigure, str], str]) -> str:
    """The whole page; ``draw`` makes an ``<svg>`` element of a figure, its ids prefixed.

    >>> page = html_page([Report("x", "X, On copies, 1999", (), ())], lambda figure, prefix: "<svg></svg>")
    >>> page.startswith("<!doctype html>"), "X, On copies, 1999" in page
    (True, True)
    """
    body = [f"<h1>{_TITLE}</h1>", _introduction(), _summary(reports), _contents(reports)]
    for report in reports:
        body.append(f'<h2 id="{report.key}">{escape(report.citation)}</h2>')
        body.extend(_section(report, section) for section in report.sections)
        body.extend(_figure(report, figure, draw) for figure in report.figures)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_TITLE}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _introduction() -> str:
    return (
        "<p>Each number that a paper prints stands beside the same number as afresh computes it. "
        "It <span class=agrees>agrees</span> if it rounds to what is printed; "
        "it <span class=differs>differs</span> where the paper is known to err or to leave something out, "
        "and the reason stands beside it; it is <span class=unexplained>unexplained</span> otherwise.</p>"
    )


def _summary(reports: Sequence[Report]) -> str:
    head = _cells("th", ["paper", *(verdict.value for verdict in CheckVerdict), "figures"])
    rows = "".join(
        f'<tr><td><a href="#{report.key}">{escape(report.citation)}</a></td>'
        + "".join(_count(report, verdict) for verdict in CheckVerdict)
        + f"<td>{len(report.figures)}</td></tr>"
        for report in reports
    )
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _count(report: Report, verdict: CheckVerdict) -> str:
    count = report.count(verdict)
    return f"<td class={verdict.value}>{count}</td>" if count else "<td class=soft>0</td>"


def _contents(reports: Sequence[Report]) -> str:
    parts = []
    for report in reports:
        titles = [section.title for section in report.sections]
        titles += [f"{figure.name}: {figure.title}" for figure in report.figures]
        anchors = [section.title for section in report.sections] + [f.name for f in report.figures]
        links = "".join(
            f'<li><a href="#{_anchor(report, anchor)}">{escape(title)}</a></li>'
            for anchor, title in zip(anchors, titles, strict=True)
        )
        parts.append(f"<strong>{escape(report.citation)}</strong><ul>{links}</ul>")
    return f'<nav aria-label="Contents">{"".join(parts)}</nav>'


def _section(report: Report, section: Section) -> str:
    note = f"<p class=soft>{escape(section.note)}</p>" if section.note else ""
    head = _cells("th", ["what"]) + "<th class=number>printed</th><th class=number>recomputed</th>"
    rows = "".join(_check(check) for check in section.checks)
    return (
        f'<section><h3 id="{_anchor(report, section.title)}">{escape(section.title)}</h3>{note}'
        f"<div class=wide><table class=checks><thead><tr>{head}<th>verdict</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _check(check: Check) -> str:
    unit = f" <span class=soft>{escape(check.unit)}</span>" if check.unit else ""
    verdict = check.verdict.value
    why = f": {escape(check.reason)}" if check.reason else ""
    return (
        f"<tr><td>{escape(check.name)}</td><td class=number>{escape(check.printed_text)}{unit}</td>"
        f"<td class=number>{escape(check.recomputed_text)}{unit}</td>"
        f"<td><span class={verdict}>{verdict}</span>{why}</td></tr>"
    )


def _figure(report: Report, figure: PaperFigure, draw: Callable[[PaperFigure, str], str]) -> str:
    anchor = _anchor(report, figure.name)
    return (
        f'<figure id="{anchor}">{draw(figure, anchor)}<figcaption>'
        f"<p><strong>{escape(figure.name)}: {escape(figure.title)}.</strong></p>"
        f"<p><em>The paper:</em> {escape(figure.paper_shows)}</p>"
        f"<p><em>Here:</em> {escape(figure.ours_shows)}</p></figcaption></figure>"
    )


def _anchor(report: Report, title: str) -> str:
    return f"{report.key}-{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
