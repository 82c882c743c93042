"""How much a tuple is expected to have changed since its last refresh: F(r;t) of Yang et al. 2010.

| model | F(r;t), t since the last refresh |
| --- | --- |
| deterministic | t/ω: one change (a citation more) every ω |
| Poisson | ½λt², the expectation of Σ (t − t_i) over the missed changes t_i |

The paper calls ½λt² asymptotic; by Campbell's theorem it is exact: E Σ (t − t_i) = ∫₀ᵗ λ(t − x) dx.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import ArrayLike, Floats, like_inputs, nonnegative


def expected_lag(rate: ArrayLike, elapsed: ArrayLike) -> Floats:
    """½λt².

    >>> expected_lag([1.0, 2.0], 3.0)
    array([4.5, 9. ])
    """
    rates, spans = nonnegative("rate", rate), nonnegative("elapsed", elapsed)
    return like_inputs(0.5 * rates.astype(np.float64) * np.square(spans.astype(np.float64)), rates, spans)  # type: ignore[no-any-return]


def deterministic_change(elapsed: ArrayLike, omega: ArrayLike) -> Floats:
    """t/ω; an infinite ω never changes.

    >>> deterministic_change([10.0, 10.0], [5.0, np.inf])
    array([2., 0.])
    """
    spans, periods = nonnegative("elapsed", elapsed), nonnegative("omega", omega, infinite=True)
    return like_inputs(spans.astype(np.float64) / periods.astype(np.float64), spans, periods)  # type: ignore[no-any-return]
