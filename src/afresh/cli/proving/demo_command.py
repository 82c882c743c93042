"""``afresh demo`` compares afresh with uniform polling on a changing site on loopback, in about a minute."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Option

from afresh.cli.options import PrintJson
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
    as_json: PrintJson = False,
) -> None:
    """Keep two copies of a changing site, one by uniform polling and one by afresh, and compare them.

    Everything runs on this machine, and is removed at the end.
    """
    from afresh.cli.proving.demo.comparison import compare
    from afresh.cli.proving.demo.screen import Screen

    for_s = None if for_time is None else parse_duration(for_time)
    with Screen(browser=not no_browser) as screen:
        found = compare(for_s, seed, screen)
    screen.print_result(found)
    if as_json:
        print_json(asdict(found))
