"""Windows in which polling is allowed."""

from __future__ import annotations

import pytest

from afresh.policy.open_time import OpenTime
from afresh.values.errors import InputError


def test_polling_is_allowed_inside_the_windows_only() -> None:
    open_time = OpenTime.of([0.0, 10.0], [2.0, 13.0])
    moments = (-1.0, 0.0, 1.5, 2.0, 9.9, 10.0, 12.9, 13.0)
    assert [open_time.is_open(now) for now in moments] == [now in (0.0, 1.5, 10.0, 12.9) for now in moments]
    with pytest.raises(InputError, match="follow each other"):
        OpenTime.of([0.0, 1.0], [2.0, 3.0])
