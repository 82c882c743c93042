"""Why it pays to neglect what changes too often, by two elements (Cho & Garcia-Molina 2000, Table 4).

An element of rate λ changes once and only once in each of λ equal parts of the day, at an unknown time.
Refreshes are spread evenly over the parts, and evenly within a part. m refreshes in a part of length 1/λ
catch a change in each of the first m of m+1 gaps with probability 1/(m+1), and the copy stays right for the
rest of the part: in all m/(2(m+1)·λ) days of freshness.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from afresh.values.errors import InputError


def expected_benefit(rates: Sequence[int], frequencies: Sequence[int]) -> Fraction:
    """Days of freshness gained per day by refreshing each element ``frequencies`` times, exactly.

    >>> expected_benefit([9, 1], [7, 3]) == Fraction(41, 72)  # row (i), the best of ten refreshes
    True
    """
    if len(rates) != len(frequencies):
        raise InputError(f"{len(rates)} rates and {len(frequencies)} frequencies: one of each per element")
    return sum((_element(rate, f) for rate, f in zip(rates, frequencies, strict=True)), Fraction(0))


def best_split(rates: Sequence[int], total: int) -> tuple[int, ...]:
    """The frequencies, ``total`` in all, of the highest benefit; the earlier element wins a tie.

    Benefits are concave, so that giving each refresh to whom it helps most is exact.

    >>> best_split([9, 1], 2), best_split([9, 1], 5), best_split([9, 1], 10)
    ((0, 2), (2, 3), (7, 3))
    """
    if total < 0:
        raise InputError(f"total is {total}: must be a whole number of 0 or more")
    split = [0] * len(rates)
    gains = [_element(rate, 1) for rate in rates]
    for _ in range(total):
        best = max(range(len(rates)), key=gains.__getitem__)
        split[best] += 1
        gains[best] = _element(rates[best], split[best] + 1) - _element(rates[best], split[best])
    return tuple(split)


def _element(rate: int, frequency: int) -> Fraction:
    if rate < 1 or frequency < 0:
        raise InputError(f"rate {rate}, frequency {frequency}: need whole numbers of at least 1 and 0 a day")
    few, parts_with_one_more = divmod(frequency, rate)
    days = parts_with_one_more * _part(few + 1) + (rate - parts_with_one_more) * _part(few)
    return days / rate


def _part(refreshes: int) -> Fraction:
    """The share of a part's length gained by so many refreshes in it."""
    return Fraction(refreshes, 2 * (refreshes + 1))
