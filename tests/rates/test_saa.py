"""SAA: its rules on every bit history, its caps, and its means on simulated pages."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.papers.zhang.simulated_pages import simulate_saa
from afresh.rates.saa import DIVISIONS, DOUBLINGS, SelfAdaptive
from afresh.values.errors import InputError

BITS = st.lists(st.booleans(), min_size=1, max_size=120)


def fed(bits: list[bool], saa: SelfAdaptive) -> SelfAdaptive:
    """Observe the bits until done."""
    for bit in bits:
        if saa.done:
            break
        saa = saa.observe(changed=bit)
    return saa


def seven(changes: int) -> list[bool]:
    return [True] * changes + [False] * (7 - changes)


@pytest.mark.parametrize(("changes", "a"), [(3, 0.7), (4, 0.7), (5, 0.4), (6, 0.4)])
def test_a_round_in_range_ends_with_the_a_of_its_range(changes: int, a: float) -> None:
    saa = fed(seven(changes), SelfAdaptive.start(2.0))
    assert saa.verdict == "estimated"
    assert saa.rate == pytest.approx(-math.log((7 - changes + a) / (7 + a)) * 2.0)
    assert saa.next_poll() is None
    assert saa.polls == 8


def test_seven_changes_double_the_frequency_and_start_afresh() -> None:
    saa = fed(seven(7), SelfAdaptive.start(1.0))
    assert (saa.frequency, saa.changed, saa.doublings) == (2.0, (), 1)
    assert saa.next_poll() == 7.5


@pytest.mark.parametrize(
    ("bits", "kept"),
    [
        ([0, 0, 0, 0, 0, 0, 0], [0, 0, 0]),
        ([1, 0, 0, 0, 0, 0, 0], [1, 0, 0]),
        ([0, 1, 0, 0, 0, 0, 0], [0, 1, 0]),
        ([0, 0, 0, 0, 1, 0, 1], [0, 0, 1]),
    ],
)
@pytest.mark.parametrize("paper", [False, True])
def test_few_changes_divide_and_merge_by_or(bits: list[int], kept: list[int], paper: bool) -> None:
    saa = fed([bool(b) for b in bits], SelfAdaptive.start(3.0, paper=paper))
    assert saa.changed == tuple(bool(b) for b in kept)
    assert saa.frequency == 1.0
    assert saa.target == 7
    assert saa.next_poll() == pytest.approx(7 / 3 + 1)


def test_an_item_that_never_changes_ends_with_at_most() -> None:
    saa = fed([False] * 500, SelfAdaptive.start(1.0))
    assert (saa.verdict, saa.divisions, saa.polls) == ("at most", DIVISIONS, 1 + 7 + 4 * DIVISIONS)
    assert 0 < saa.rate < saa.bounds()[1]
    assert saa.bounds()[0] == 0


def test_an_item_that_always_changes_ends_with_at_least() -> None:
    saa = fed([True] * 500, SelfAdaptive.start(1.0))
    assert (saa.verdict, saa.doublings, saa.polls) == ("at least", DOUBLINGS, 1 + 7 * (DOUBLINGS + 1))
    assert saa.bounds()[0] < saa.rate < saa.bounds()[1] == math.inf
    assert saa.frequency == 2.0**DOUBLINGS


def test_a_frequency_that_cannot_grow_gets_eight_more_polls_once() -> None:
    start = SelfAdaptive.start(1.0, fastest=1.5)
    assert fed([True] * 7, start).target == 15
    always = fed([True] * 99, start)
    assert (always.verdict, always.polls) == ("at least", 16)
    assert always.rate == pytest.approx(math.log(15.4 / 0.4))
    mixed = fed([True] * 11 + [False] * 4, start)
    assert mixed.verdict == "estimated"
    assert mixed.rate == pytest.approx(math.log(15.4 / 4.4))


def test_the_guess_itself_respects_the_fastest_frequency() -> None:
    assert SelfAdaptive.start(10.0, fastest=4.0).next_poll() == 0.25


def test_paper_rules_end_a_slower_round_with_a_of_04_and_never_stop_for_a_static_item() -> None:
    slower = [False] * 7 + [True, True, True, False]
    ours = fed(slower, SelfAdaptive.start(3.0))
    letter = fed(slower, SelfAdaptive.start(3.0, paper=True))
    assert ours.rate == pytest.approx(math.log(7.7 / 4.7))
    assert letter.rate == pytest.approx(math.log(7.4 / 4.4))
    assert not fed([False] * 400, SelfAdaptive.start(1.0, paper=True)).done
    # After a doubling the letter stops below 2, even where a division would follow.
    assert fed([True] * 7 + seven(1), SelfAdaptive.start(1.0, paper=True)).verdict == "estimated"
    assert fed([True] * 7 + seven(1), SelfAdaptive.start(1.0)).verdict == "polling"


@settings(deadline=None)
@given(bits=BITS, guess=st.floats(1e-9, 1e9), cap=st.sampled_from([1.0, 1.5, 4.0, math.inf]))
def test_every_history_keeps_the_promises(bits: list[bool], guess: float, cap: float) -> None:
    saa = SelfAdaptive.start(guess, fastest=guess * cap)
    for bit in bits:
        due = saa.next_poll()
        if due is None:
            break
        assert due > saa.last_poll
        saa = saa.observe(changed=bit)
        assert saa.frequency <= guess * cap
        assert 0 < saa.rate < math.inf
    low, high = saa.bounds()
    assert 0 <= low <= high
    if saa.done:
        assert low <= saa.rate * (1 + 1e-12) <= high * (1 + 2e-12)
    assert saa.polls <= 1 + 7 * (DOUBLINGS + 1) + 7 * DIVISIONS + 8
    assert pickle.loads(pickle.dumps(saa)) == saa


@settings(deadline=None)
@given(bits=BITS, guess=st.floats(1e-3, 1e3), scale=st.floats(1e-3, 1e3))
def test_rate_scales_with_the_unit_of_time(bits: list[bool], guess: float, scale: float) -> None:
    one, other = fed(bits, SelfAdaptive.start(guess)), fed(bits, SelfAdaptive.start(guess * scale))
    assert one.verdict == other.verdict
    assert other.rate == pytest.approx(one.rate * scale)


def test_late_polls_are_estimated_with_their_true_interval() -> None:
    saa, now = SelfAdaptive.start(1.0, at=100.0), 100.0
    for bit in (1, 0, 1, 1, 0, 1, 1):
        now += 1.5
        saa = saa.observe(changed=bool(bit), at=now)
    on_time = fed([True] * 5 + [False] * 2, SelfAdaptive.start(1.0))
    assert saa.rate == pytest.approx(on_time.rate / 1.5)


def test_lateness_survives_a_merge() -> None:
    saa, now = SelfAdaptive.start(1.0), 0.0
    for _ in range(7):
        now += 2.0
        saa = saa.observe(changed=False, at=now)
    assert saa.late == (1.0, 3.0, 3.0)


def test_wrong_uses_are_refused() -> None:
    saa = SelfAdaptive.start(1.0, at=5.0)
    with pytest.raises(InputError, match="must come after"):
        saa.observe(changed=True, at=5.0)
    with pytest.raises(InputError, match="above 0"):
        SelfAdaptive.start(0.0)
    done = fed(seven(4), saa)
    with pytest.raises(InputError, match="done"):
        done.observe(changed=True)


@pytest.mark.parametrize(
    ("ratio", "paper", "low", "high"),
    [
        (0.03, True, 1.055, 1.135),
        (0.2, True, 1.095, 1.15),
        (0.45, True, 1.055, 1.10),
        (0.03, False, 1.00, 1.07),
        (0.2, False, 1.06, 1.13),
        (1.0, False, 0.93, 0.97),
        (1.0, True, 0.93, 0.97),
        (4.0, False, 0.73, 0.77),
        (30.0, True, 0.73, 0.77),
    ],
)
def test_mean_of_the_estimate_on_poisson_pages(ratio: float, paper: bool, low: float, high: float) -> None:
    runs = simulate_saa(np.full(20_000, ratio), 1.0, np.random.default_rng(11), paper=paper)
    assert low < float(np.mean(runs.rate)) / ratio < high


def test_with_a_fixed_frequency_two_thirds_of_the_papers_runs_never_end() -> None:
    rates = np.full(5000, 3.0)
    letter = simulate_saa(rates, 1.0, np.random.default_rng(2), paper=True, fastest=1.0)
    assert 0.60 < np.mean(letter.verdict == "unfinished") < 0.70
    ours = simulate_saa(rates, 1.0, np.random.default_rng(2), fastest=1.0)
    assert set(ours.verdict) == {"estimated", "at least"}
    assert ours.polls.max() == 16


@pytest.mark.parametrize(("rate", "bit"), [(0.0, False), (1e12, True)])
@pytest.mark.parametrize("fastest", [1.0, math.inf])
def test_simulation_equals_the_object_where_nothing_is_random(rate: float, bit: bool, fastest: float) -> None:
    runs = simulate_saa([rate], 1.0, np.random.default_rng(0), fastest=fastest)
    saa = fed([bit] * 99, SelfAdaptive.start(1.0, fastest=fastest))
    assert (runs.verdict[0], runs.polls[0]) == (saa.verdict, saa.polls)
    assert runs.rate[0] == pytest.approx(saa.rate)
    assert runs.time[0] == pytest.approx(saa.last_poll)


@pytest.mark.parametrize("paper", [False, True])
def test_simulation_equals_the_object_in_distribution(paper: bool) -> None:
    rng = np.random.default_rng(7)
    by_object = []
    for _ in range(1500):
        saa = SelfAdaptive.start(1.0, fastest=2.0, paper=paper)
        while not saa.done and saa.polls < 60:
            saa = saa.observe(changed=bool(rng.random() < -math.expm1(-0.8 / saa.frequency)))
        by_object.append((saa.rate, saa.polls))
    rate, polls = np.array(by_object).T
    runs = simulate_saa(np.full(20_000, 0.8), 1.0, rng, fastest=2.0, paper=paper, most_polls=60)
    assert np.mean(rate) == pytest.approx(np.mean(runs.rate), rel=0.04)
    assert np.mean(polls) == pytest.approx(np.mean(runs.polls), rel=0.04)
    assert np.mean(rate < 0.6) == pytest.approx(np.mean(runs.rate < 0.6), abs=0.045)
