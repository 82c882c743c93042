"""How good a set of probes is: coverage ratio, distinct coverage and speedup ratio (Yang et al. 2010,
§5.1).

The coverage ratio Σ_q E[coverage(q)]/|L| counts a tuple as often as it is covered and may exceed 1, so the
distinct share is given beside it. The paper defines the speedup ratio as requests per tuple and plots its
inverse, tuples per request: the higher the better. The latter is meant here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afresh.probes.greedy_probes import Probe


@dataclass(frozen=True, slots=True)
class ProbeQuality:
    """The paper's measures of a set of probes."""

    coverage_ratio: float
    distinct_ratio: float
    speedup_ratio: float
    requests: float


def quality_of(probes: Sequence[Probe], tuples: int) -> ProbeQuality:
    """The measures of ``probes`` on a relation of ``tuples`` tuples.

    A tuple that q covers with probability E[coverage(q)]/|R_L(q)| is covered by some q with 1 − Π(1 − …).

    >>> twice = Probe((0,), np.array([0, 1]), np.array([0, 1]), 20.0, 1.0, 1.0)  # first of two pages
    >>> quality_of([twice], 4)
    ProbeQuality(coverage_ratio=0.25, distinct_ratio=0.25, speedup_ratio=1.0, requests=1.0)
    """
    missed = np.ones(tuples)
    for probe in probes:
        missed[probe.tuples] *= 1.0 - probe.expected / max(len(probe.tuples), 1)
    reached = float((1.0 - missed).sum())
    requests = float(sum(probe.requests for probe in probes))
    covered = float(sum(probe.expected for probe in probes))
    return ProbeQuality(
        covered / tuples if tuples else 0.0,
        reached / tuples if tuples else 0.0,
        reached / requests if requests else 0.0,
        requests,
    )
