"""The attacks that version 0.1.0 did not withstand, each beside an honest page: memory, and stops of polling.

For each point of the list: the memory of all processes of the engine at once, and the longest time
in which the honest page was not polled. A row ``wrong`` is printed if an attack had the effect it had before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.attack_list import ATTACKS, Attack
from bench.attack_stage import Figures, Pages, stage
from bench.rows import Row

MOST_MB, LONGEST_S = 400.0, 1.0
_QUICK = (16,)


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Return two rows for each attack, or for those whose points are ``cases``; the limits are those that the
    project promises."""
    found = []
    for attack in ATTACKS:
        if (quick and attack.point not in _QUICK) or (cases and str(attack.point) not in cases):
            continue
        figures = measure(attack)
        name = f"{attack.point:2}. {attack.name}"
        if figures.problem:
            name += f": WRONG: {figures.problem[:300]}"
        limit_s = None if quick else LONGEST_S  # the tests run it on a machine that is busy
        found.append(Row(f"{name}, memory", figures.peak_bytes / 1e6, "MB", at_most=MOST_MB))
        wrong = float("inf") if figures.problem else figures.longest_stop_s
        found.append(Row(f"{name}, longest stop", wrong, "s", at_most=limit_s))
    return found


def measure(attack: Attack) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        pages = Pages()
        with stage(Path(folder), pages) as here:
            attack.run(here, pages)
            here.end()
            here.figures.problem = here.figures.problem or attack.problem(here)
            return here.figures
