"""Arrays are checked on the way in."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.values.arrays import as_floats, like_inputs, nonnegative
from afresh.values.errors import InputError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1.0, np.nan], r"rate\[1\] is nan"),
        ([np.inf], r"rate\[0\] is inf: must be a number of 0 or more, and finite"),
        ([[0.0, -1.0]], r"rate\[0, 1\] is -1"),
        (-2, "rate is -2"),
        ("often", "rate is not a list of numbers"),
        ([1, "x"], "rate is not a list of numbers"),
    ],
)
def test_what_is_no_rate(given: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        nonnegative("rate", given)  # type: ignore[arg-type]


def test_infinity_where_it_is_allowed() -> None:
    assert nonnegative("frequency", [0, np.inf], infinite=True).tolist() == [0, np.inf]


def test_storage_keeps_its_type() -> None:
    single = as_floats("rate", np.ones(2, dtype=np.float32))
    double = as_floats("rate", [1, 2])
    assert like_inputs(np.ones(2), single, single).dtype == np.float32
    assert like_inputs(np.ones(2), single, double).dtype == np.float64
    assert isinstance(like_inputs(np.array(0.5), np.array(1.0)), float)
