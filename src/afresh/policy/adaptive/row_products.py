"""Products of the beliefs of many items with a small table, computed a few rows at a time.

The BLAS library divides a large product between threads. A product of 8,192 rows with a table of 18 × 22
numbers takes a tenth of a millisecond, which is less than threads need to start and to wait for each other.
On two busy cores the whole product took 17 times as much processor time as the same product in blocks of
``ROWS`` rows, which are small enough for one thread. Each row of the result is the same in both cases.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

ROWS = 1024  # of a block

Number = TypeVar("Number", np.float32, np.float64)


def row_products(rows: npt.NDArray[Number], table: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return ``rows @ table``; ``table`` may be a vector. Both must have the same type.

    >>> row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0])).tolist()
    [21.0, 43.0]
    """
    if len(rows) <= ROWS:
        return np.asarray(rows @ table)
    product = np.empty((len(rows), *table.shape[1:]), dtype=rows.dtype)
    for begin in range(0, len(rows), ROWS):
        np.matmul(rows[begin : begin + ROWS], table, out=product[begin : begin + ROWS])
    return product
