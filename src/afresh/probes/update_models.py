"""How much a record r is expected to have changed since its last refresh: F(r;t) of Yang et al. 2010.

| model | F(r;t), with t the time since the last refresh |
| --- | --- |
| deterministic | t/ω, for one change (such as one more citation) in every time span ω |
| Poisson | ½λt², the expectation of Σ (t − t_i) over the missed changes at times t_i, at the rate λ |

The paper calls ½λt² asymptotic; by Campbell's theorem it is exact: E Σ (t − t_i) = ∫₀ᵗ λ(t − x) dx.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import ArrayLike, Floats, like_inputs, nonnegative


def expected_lag(rate: ArrayLike, elapsed: ArrayLike) -> Floats:
    """Return ½λt², the expected sum, over missed changes, of the time since the change.
    λ is ``rate``, t the time since the last refresh (``elapsed``).

    >>> expected_lag([1.0, 2.0], 3.0)
    array([4.5, 9. ])
    """
    rates, spans = nonnegative("rate", rate), nonnegative("elapsed", elapsed)
    lag: Floats = like_inputs(
        0.5 * rates.astype(np.float64) * np.square(spans.astype(np.float64)), rates, spans
    )
    return lag


def deterministic_change(elapsed: ArrayLike, omega: ArrayLike) -> Floats:
    """Return elapsed/omega, the number of changes since the last refresh if there is one every ``omega``.

    >>> deterministic_change([10.0, 10.0], [5.0, np.inf])
    array([2., 0.])
    """
    spans, periods = nonnegative("elapsed", elapsed), nonnegative("omega", omega, infinite=True)
    changes: Floats = like_inputs(spans.astype(np.float64) / periods.astype(np.float64), spans, periods)
    return changes
