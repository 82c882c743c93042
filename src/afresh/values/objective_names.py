"""The names of the objectives that a plan can optimise, and the targets that it is to meet, as people write
them: ``0.9``, ``6h``, ``lag=6h``.

Commands, settings, the API and the pages take the names from here. The formulas are in
``afresh.allocation.objectives``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from afresh.values.errors import UsageError
from afresh.values.units import parse_duration

OBJECTIVE_TITLES = {
    "freshness": "Freshness: share of copies that are right",
    "age": "Age: how long copies have been wrong",
    "harmonic": "Harmonic staleness: changes missed, the first counting most",
    "missed": "Missed changes",
    "lag": "Content lag: missed changes times how long",
}

OBJECTIVE_NAMES = tuple(OBJECTIVE_TITLES)
OBJECTIVES_IN_WORDS = f"{', '.join(OBJECTIVE_NAMES[:-1])} or {OBJECTIVE_NAMES[-1]}"

Measure: TypeAlias = Literal["freshness", "age", "lag"]
_LAG = "lag="


@dataclass(frozen=True, slots=True)
class Target:
    """A target for one ``measure``: the freshness (a share), or the mean age or the content lag (seconds).
    The content lag of all items is F(L;t) = Σ w·Σ(t − tᵢ)/N over the changes at tᵢ that the copies of N items
    of weight w have missed; Yang et al. (2010) call it content freshness. 0 means that nothing was missed."""

    measure: Measure
    value: float


def parse_target(text: str) -> Target:
    """Return the target that a text describes; raise ``UsageError`` if it describes none.

    >>> parse_target("0.9"), parse_target("90%") == parse_target("0.9")
    (Target(measure='freshness', value=0.9), True)
    >>> parse_target("6h"), parse_target("lag=1m")
    (Target(measure='age', value=21600.0), Target(measure='lag', value=60.0))
    >>> parse_target("soon")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: 'soon' is no target: give a freshness (0.9), an age (6h) or lag=6h
    """
    text = text.strip()
    try:
        if text.startswith(_LAG):
            return Target("lag", parse_duration(text.removeprefix(_LAG)))
        try:
            return Target("freshness", float(text[:-1]) / 100 if text.endswith("%") else float(text))
        except ValueError:
            return Target("age", parse_duration(text))
    except UsageError:
        words = "give a freshness (0.9), an age (6h) or lag=6h"
        raise UsageError(f"{text!r} is no target: {words}") from None
