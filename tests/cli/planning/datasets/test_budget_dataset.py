"""``afresh budget`` of a dataset against the same items in one file."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.cli.conftest import Afresh
from tests.cli.planning.datasets.conftest import MakeItems


@pytest.mark.parametrize("target", ["0.6", "0.95", "0.001"])
def test_the_least_budget_is_that_of_one_file(afresh: Afresh, make_items: MakeItems, target: str) -> None:
    make_items()
    parts = json.loads(afresh("budget", "items", "--target", target, "--json").out)
    alone = json.loads(afresh("budget", "whole.parquet", "--target", target, "--json").out)
    assert parts.keys() == alone.keys()
    for name in ("budget", "freshness", "marginal", "dropped"):
        assert parts[name] == pytest.approx(alone[name], rel=1e-6), name


def test_the_curve_is_that_of_one_file(afresh: Afresh, make_items: MakeItems) -> None:
    make_items(rate=np.where(np.arange(3000) < 300, 0, np.random.default_rng(3).lognormal(0, 2, 3000)))
    parts, alone = (
        json.loads(afresh("budget", items, "--curve", "--json").out)["curve"]
        for items in ("items", "whole.parquet")
    )
    assert len(parts) == len(alone) == 41
    for name in ("budget", "freshness", "marginal", "dropped"):
        one, other = ([point[name] for point in curve] for curve in (parts, alone))
        np.testing.assert_allclose(one, other, rtol=2e-2, err_msg=name)


def test_targets_that_a_dataset_cannot_have(afresh: Afresh, make_items: MakeItems) -> None:
    make_items(low=np.full(3000, 1e-3))
    ran = afresh("budget", "items", "--target", "6h")
    assert ran.code == 2
    assert "--target 6h: not with a dataset or --on, which plan freshness" in ran.err
    assert "no finite budget" in afresh("budget", "items/part-0.parquet", "--target", "1").err
    ran = afresh("budget", "items", "--target", "0.8")
    assert ran.code == 2
    assert "has a column 'low'" in ran.err


def test_items_that_never_change_need_no_budget(afresh: Afresh, make_items: MakeItems) -> None:
    make_items(rate=np.zeros(3000))
    assert json.loads(afresh("budget", "items", "--target", "0.9", "--json").out)["budget"] == 0
    assert json.loads(afresh("budget", "items", "--curve", "--json").out)["curve"][0]["freshness"] == 1
