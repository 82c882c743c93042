"""How much a record has changed."""

from __future__ import annotations

import pytest

from afresh.probes.dissimilarity import (
    DISSIMILARITIES,
    absolute,
    record_change,
    relative,
)
from afresh.values.errors import InputError, UsageError


@pytest.mark.parametrize("name", sorted(DISSIMILARITIES))
def test_nothing_differs_from_itself(name: str) -> None:
    measure = DISSIMILARITIES[name]
    assert measure("7.5", "7.5") == 0.0
    assert measure("7.5", "9") == measure("9", "7.5") > 0.0


def test_fields_add_up_and_missing_ones_count() -> None:
    fields = {"price": absolute, "rank": relative}
    assert record_change({"price": "3", "rank": "10"}, {"price": "5", "rank": "5"}, fields) == 2.5
    assert record_change({"price": "3"}, {"price": "3", "rank": "5"}, fields) == 1.0
    with pytest.raises(UsageError, match="finite number of 0 or more"):
        record_change({"a": "1"}, {"a": "2"}, {"a": lambda *_: -1.0})
    with pytest.raises(InputError, match="is not a number: use the dissimilarity unequal"):
        absolute("cheap", "3")
