"""Due times that can be put in order."""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Float64s
from afresh.values.errors import InputError
from afresh.values.stored import Ids


def check_due(ids: Ids, due_s: Float64s) -> None:
    """Refuse what is no time, naming the first item.

    >>> check_due(np.array([7]), np.array([np.nan]))
    Traceback (most recent call last):
    afresh.values.errors.InputError: item 7 is due at nan: must be Unix seconds, or inf for never
    """
    wrong = np.flatnonzero(np.isnan(due_s))
    if wrong.size:
        raise InputError(f"item {ids[wrong[0]]} is due at nan: must be Unix seconds, or inf for never")
