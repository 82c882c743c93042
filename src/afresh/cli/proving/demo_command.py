"""``afresh demo`` compares afresh with two usual ways of polling, on a changing site on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Option

from afresh.cli.files import check_files, write_picture
from afresh.cli.options import Plot, PrintJson
from afresh.cli.summary import print_json
from afresh.values.units import parse_duration


def demo(
    for_time: Annotated[
        str | None, Option("--for", metavar="30s", help="How long to watch, instead of 750 days of the site.")
    ] = None,
    seed: Annotated[int, Option(metavar="N", help="Which pages change when.", min=0)] = 1,
    no_browser: Annotated[
        bool, Option("--no-browser", help="Print the address of the dashboard, but do not open it.")
    ] = False,
    plot: Plot = None,
    as_json: PrintJson = False,
) -> None:
    """Show how many requests afresh saves, on a changing site on this machine, in about a minute.

    Three copies of the site are kept with the same number of requests: by afresh, by uniform polling, and by
    the usual rule of crawlers. Nothing leaves this machine, and all files are removed at the end.
    """
    check_files([], None, plot)
    from afresh.cli.proving.demo.comparison import compare
    from afresh.cli.proving.demo.screen import Screen

    for_s = None if for_time is None else parse_duration(for_time)
    with Screen(browser=not no_browser) as screen:
        found = compare(for_s, seed, screen)
    if plot is not None:
        from afresh.cli.proving.demo.picture import demo_figure

        write_picture(plot, demo_figure(screen.days, screen.smooth_lines(), found))
    screen.print_result(found)
    if as_json:
        print_json(asdict(found))
