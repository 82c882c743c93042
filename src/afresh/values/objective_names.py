"""The names of the objectives that a plan can optimise, each with a title for people.

Commands, settings, the API and the pages take the names from here. The formulas are in
``afresh.allocation.objectives``.
"""

from __future__ import annotations

OBJECTIVE_TITLES = {
    "freshness": "Freshness: share of copies that are right",
    "age": "Age: how long copies have been wrong",
    "harmonic": "Harmonic staleness: changes missed, the first counting most",
    "missed": "Missed changes",
    "lag": "Content lag: missed changes times how long",
}

OBJECTIVE_NAMES = tuple(OBJECTIVE_TITLES)
OBJECTIVES_IN_WORDS = f"{', '.join(OBJECTIVE_NAMES[:-1])} or {OBJECTIVE_NAMES[-1]}"
