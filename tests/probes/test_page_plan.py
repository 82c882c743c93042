"""Plans of pages under a quota: lazy is plain, and the bound holds."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.probes.candidates import Candidates, request_counts
from afresh.probes.page_plan import LookUp, ProbeRequest, ReadPage, plan_pages
from afresh.probes.postings import Postings

PAGE = 2
instances = st.lists(
    st.tuples(st.sets(st.integers(0, 5), min_size=1).map(sorted), st.integers(0, 6)), min_size=1, max_size=4
)
worths = st.lists(st.integers(0, 4), min_size=6, max_size=6).map(lambda row: np.array(row, dtype=np.float64))


def as_candidates(given: list[tuple[list[int], int]]) -> Candidates:
    rows = [row for row, _ in given]
    totals = np.array([len(row) + more for row, more in given], dtype=np.float64)
    return Candidates(np.arange(len(rows))[:, None], Postings.of_rows(rows, 6), totals)


def value(found: Candidates, worth: npt.NDArray[np.float64], read: list[int], looked: list[int]) -> float:
    """Σ v (1 − Π(1 − π)), as written."""
    missed = np.ones(6)
    missed[looked] = 0.0
    for query, pages in enumerate(read):
        missed[found.tuples.row(query)] *= 1 - min(1.0, pages * PAGE / found.totals[query])
    return float((worth * (1 - missed)).sum())


def counted(found: Candidates, steps: tuple[ProbeRequest, ...]) -> tuple[list[int], list[int]]:
    read = [sum(isinstance(s, ReadPage) and s.query == query for s in steps) for query in range(len(found))]
    return read, [step.tuple for step in steps if isinstance(step, LookUp)]


@given(given=instances, worth=worths, quota=st.integers(1, 6))
@settings(deadline=None)
def test_every_step_is_the_best_there_is(
    given: list[tuple[list[int], int]], worth: npt.NDArray[np.float64], quota: int
) -> None:
    found = as_candidates(given)
    plan = plan_pages(found, PAGE, worth, quota)
    pages = request_counts(found.totals, PAGE)
    for place in range(len(plan.steps)):
        read, looked = counted(found, plan.steps[:place])
        now = value(found, worth, read, looked)
        gains = [value(found, worth, read, [*looked, r]) - now for r in range(6) if r not in looked]
        for query in range(len(found)):
            if read[query] < pages[query]:
                more = [n + (q == query) for q, n in enumerate(read)]
                gains.append(value(found, worth, more, looked) - now)
        np.testing.assert_allclose(plan.gains[place], max(gains), rtol=1e-9, atol=1e-12)
    read, looked = counted(found, plan.steps)
    np.testing.assert_allclose(plan.gains.sum(), value(found, worth, read, looked), rtol=1e-9, atol=1e-12)


@given(given=instances, worth=worths, quota=st.integers(1, 3))
@settings(deadline=None)
def test_no_plan_beats_the_bound_and_greedy_has_its_share(
    given: list[tuple[list[int], int]], worth: npt.NDArray[np.float64], quota: int
) -> None:
    found = as_candidates(given)
    plan = plan_pages(found, PAGE, worth, quota)
    pages = request_counts(found.totals, PAGE).astype(int)
    best = 0.0
    for read in product(*(range(min(quota, most) + 1) for most in pages)):
        left = quota - sum(read)
        if left < 0:
            continue
        looked: list[int] = []
        for _ in range(left):  # given the pages, look-ups are best chosen by what is left of each tuple
            gains = [value(found, worth, list(read), [*looked, r]) for r in range(6)]
            looked.append(int(np.argmax(gains)))
        best = max(best, value(found, worth, list(read), looked))
    assert best <= plan.bound + 1e-9
    assert plan.gains.sum() >= (1 - 1 / np.e) * best - 1e-9


def test_a_limit_ends_a_query() -> None:
    found = as_candidates([([0, 1, 2, 3, 4, 5], 6)])
    plan = plan_pages(found, PAGE, np.ones(6), 20, limit=4)
    read, looked = counted(found, plan.steps)
    assert read[0] <= 2
    assert sorted(looked) == [0, 1, 2, 3, 4, 5] or read[0] > 0
