"""Cho & Garcia-Molina 2000, Table 4, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from afresh.papers.cho.budget_tables import best_split, expected_benefit

TABLE_4 = [
    ((1, 0), Fraction(1, 36)),
    ((0, 1), Fraction(9, 36)),
    ((2, 0), Fraction(2, 36)),
    ((1, 1), Fraction(10, 36)),
    ((0, 2), Fraction(12, 36)),
    ((3, 2), Fraction(30, 72)),
    ((2, 3), Fraction(31, 72)),
    ((9, 1), Fraction(36, 72)),
    ((7, 3), Fraction(41, 72)),
    ((5, 5), Fraction(40, 72)),
]


@pytest.mark.parametrize(("split", "benefit"), TABLE_4)
def test_every_row(split: tuple[int, int], benefit: Fraction) -> None:
    assert expected_benefit([9, 1], split) == benefit


@pytest.mark.parametrize(("total", "best"), [(1, (0, 1)), (2, (0, 2)), (5, (2, 3)), (10, (7, 3))])
def test_the_best_split_of_each_total(total: int, best: tuple[int, int]) -> None:
    assert best_split([9, 1], total) == best


@pytest.mark.parametrize("rates", [(9, 1), (2, 3), (1, 4, 2)])
@pytest.mark.parametrize("total", range(8))
def test_no_other_split_is_better(rates: tuple[int, ...], total: int) -> None:
    splits = [s for s in product(range(total + 1), repeat=len(rates)) if sum(s) == total]
    best = best_split(rates, total)
    assert sum(best) == total
    assert expected_benefit(rates, best) == max(expected_benefit(rates, split) for split in splits)


def test_one_refresh_of_one_part_by_simple_counting() -> None:
    # Two refreshes at 1/3 and 2/3 of the day, the change equally likely at any of 3000 instants between them.
    instants = [(2 * i + 1) * Fraction(1, 6000) for i in range(3000)]
    right = sum(
        next((1 - s for s in (Fraction(1, 3), Fraction(2, 3)) if change <= s), Fraction(0))
        for change in instants
    )
    assert right / 3000 == expected_benefit([1], [2])
