"""The four numbers of an item's net income.

With benefit B, stale cost O and update cost C_U per record, n records refreshed together at the cost C(n),

    NI(u) = G·F(u) − S − K/u − U·(1−z(u))/u,    G = n(B+O),  S = nO,  K = C(n),  U = n·C_U

(Razniewski 2016, Eqs. 6, 12, 13 and 15, the last with 1−z(u) for z(u)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class Terms:
    """G, S, K and U of the formula above, one number per item."""

    gain: Float64s
    stale: Float64s
    check: Float64s
    update: Float64s

    def take(self, rows: npt.NDArray[np.intp]) -> Terms:
        """The terms of some of the items."""
        return Terms(self.gain[rows], self.stale[rows], self.check[rows], self.update[rows])

    def times(self, count: Float64s) -> Terms:
        """The terms of ``count`` such items together."""
        return Terms(self.gain * count, self.stale * count, self.check * count, self.update * count)
