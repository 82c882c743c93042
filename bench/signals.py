"""How long each long-running command takes to end after SIGINT or SIGTERM, at work and while it starts.

Times are from the signal to the end of the process. The machine is otherwise idle: one process at a time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from statistics import median

from tests.servers.signalled import COMMANDS, ENDLESS, moments, world

from bench.rows import Row

LIMIT_S = 2.0
_MOMENTS = 20
_QUICK = ("serve", "plan")


def rows(*, quick: bool) -> list[Row]:
    """Return the median and the worst time for each command; two seconds are promised."""
    found = []
    with (
        tempfile.TemporaryDirectory() as folder,
        world(Path(folder), rows=6000 if quick else 200_000) as here,
    ):
        for command in _QUICK if quick else COMMANDS:
            # The demo sets up for some seconds. Commands that end by themselves are met while they live.
            span_s = 12.0 if command == "demo" else 4.0 if command in ENDLESS else here.lasts_s(command)
            when = moments(Random(1), [command], 2 if quick else _MOMENTS, span_s)
            ends = [here.ended(each) for each in when]
            wrong = [end.problem for end in ends if end.problem]
            if wrong:
                raise RuntimeError(f"{command}: {wrong[0]}")
            took = [end.took_s for end in ends if end.was_alive] or [0.0]
            found.append(Row(f"{command}, median of {len(took)}", median(took), "s"))
            limit_s = (
                None if quick else LIMIT_S
            )  # the tests run it on a machine that is busy with other things
            found.append(Row(f"{command}, worst", max(took), "s", at_most=limit_s))
    return found
