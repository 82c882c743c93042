"""What is polled next: the index against the model's own, bounds, groups that rest, audits without bias."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.engine.scheduler.audits import audited_freshness, draw, wilson_interval
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.picker import GroupKey, Picker
from afresh.engine.scheduler.ranking import Ranking, RankingStart
from afresh.engine.scheduler.row_policy import Priorities, RowPolicy
from afresh.values.items import STATUSES
from afresh.values.stored import ObservationColumns, PolicyColumns

NOW = 1000.0


def columns(count: int, first_id: int = 1, **given: object) -> PolicyColumns:
    """Items as a store gives them: polled at 900 unless said."""
    plain: dict[str, object] = {
        "id": np.arange(first_id, first_id + count),
        "source": np.ones(count, dtype=np.int64),
        "group": np.full(count, 2),
        "status": np.zeros(count, dtype=np.int8),
        "weight": np.ones(count),
        "cost": np.ones(count),
        "min_interval_s": np.zeros(count),
        "max_interval_s": np.full(count, np.inf),
        "prior_rate_per_s": np.full(count, np.nan),
        "polled_s": np.full(count, 900.0),
        "due_s": np.nan_to_num(np.asarray(given.get("polled_s", np.full(count, 900.0)))) + 50.0,
        "belief_size": np.zeros(count, dtype=np.int64),
        "beliefs": b"",
    }
    return PolicyColumns(**(plain | given))  # type: ignore[arg-type]


def policy(count: int, name: str = "adaptive", **given: object) -> RowPolicy:
    item_rows = ItemRows()
    item_rows.load([columns(count, 1, **given)])
    return RowPolicy(Ranking(item_rows, RankingStart(0.1, "freshness", NOW)), name)  # type: ignore[arg-type]


def always(_place: GroupKey, now_s: float) -> float:
    return now_s


def test_an_item_is_due_when_its_worth_reaches_the_price() -> None:
    chosen = policy(3, polled_s=np.full(3, NOW))
    chosen.record_pick(float(chosen.poll_values(NOW + 700.0)[0]))
    due_s = chosen.next_polls_s(np.arange(3), NOW)
    assert due_s - NOW == pytest.approx(700.0, rel=0.05)


def test_never_fetched_comes_first_then_overdue_then_worth() -> None:
    polled = np.array([900.0, np.nan, 900.0, 100.0])
    longest = np.array([np.inf, np.inf, 50.0, np.inf])
    chosen = policy(4, polled_s=polled, max_interval_s=longest)
    assert np.argsort(-chosen.poll_values(NOW)).tolist() == [1, 2, 3, 0]


def test_what_may_not_be_polled_is_worth_nothing() -> None:
    chosen = policy(5, min_interval_s=np.array([0.0, 200.0, 0.0, 0.0, 0.0]))
    chosen.item_rows.is_active[2] = False
    chosen.item_rows.is_busy[3] = True
    chosen.item_rows.not_before_s[4] = NOW + 1
    assert np.isfinite(chosen.poll_values(NOW)).tolist() == [True, False, False, False, False]


def test_what_a_person_asked_for_goes_before_all_but_what_is_new() -> None:
    chosen = policy(
        3, polled_s=np.array([900.0, np.nan, 900.0]), max_interval_s=np.array([50.0, np.inf, np.inf])
    )
    chosen.item_rows.is_requested[2] = True
    assert np.argsort(-chosen.poll_values(NOW)).tolist() == [1, 2, 0]


def test_uniform_takes_the_longest_ago() -> None:
    chosen = policy(3, "uniform", polled_s=np.array([900.0, 800.0, 950.0]), weight=np.array([9.0, 1.0, 9.0]))
    assert Picker(chosen).next(NOW, always) == 1


def test_polls_teach_rates() -> None:
    chosen = policy(2)
    for step in range(1, 31):
        changed = np.array([step % 2 == 0, False])
        chosen.ranking.learn(np.arange(2), np.full(2, NOW + 10 * step), np.full(2, 10.0), changed)
    rates = chosen.ranking.adaptive.rates()
    assert rates[0] == pytest.approx(math.log(2) / 10, rel=0.5)
    assert rates[1] < 0.01


def test_holds_survive_the_store() -> None:
    chosen = policy(1)
    chosen.item_rows.not_before_s[0] = 1234.0
    (kept,) = chosen.ranking.pack(np.array([0]))
    item_rows = ItemRows()
    item_rows.load([columns(1, belief_size=np.array([len(kept)]), beliefs=kept, due_s=np.array([2000.0]))])
    assert item_rows.not_before_s.tolist() == [1234.0]


def test_a_group_that_rests_starves_no_other() -> None:
    chosen = policy(6, group=np.array([2, 2, 2, 2, 3, 3]), weight=np.array([9.0, 9, 9, 9, 1, 1]))
    picker = Picker(chosen)
    ready = {2: NOW + 5, 3: NOW}
    rows = [picker.next(NOW, lambda place, _now: ready[place[1]]) for _ in range(3)]
    assert rows == [4, 5, None]
    assert picker.next_ready_s() == NOW + 5
    assert picker.next(NOW + 5, always) == 0


def test_a_full_group_waits_until_it_is_freed() -> None:
    chosen = policy(2)
    picker = Picker(chosen)
    assert picker.next(NOW, always) == 0
    assert picker.next(NOW, lambda _place, _now: math.inf) is None
    picker.release_group((1, 2))
    assert picker.next(NOW, always) == 1


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=30))
def test_every_item_is_picked_once_in_order_of_worth(weights: list[float]) -> None:
    chosen = policy(len(weights), weight=np.array(weights))
    picker, worth = Picker(chosen), chosen.poll_values(NOW)
    rows = [picker.next(NOW, always) for _ in weights]
    assert sorted(row for row in rows if row is not None) == list(range(len(weights)))
    assert np.all(np.diff(worth[np.array(rows, dtype=np.int64)]) <= 0)
    assert picker.next(NOW, always) is None


def test_many_items_in_groups_that_rest_are_found_too() -> None:
    count = 60_000
    group = np.where(np.arange(count) < count - 10, 2, 3)
    chosen = policy(count, group=group, weight=np.where(group == 2, 9.0, 1.0))
    picker = Picker(chosen)
    only_three = lambda place, now_s: now_s if place[1] == 3 else now_s + 60.0  # noqa: E731
    assert picker.next(NOW, only_three) is None  # the pool held the heaviest alone …
    row = picker.next(NOW + 1.0, only_three)
    assert row is not None
    assert group[row] == 3  # … the next one holds some of every group


def test_sources_of_a_host_share_its_turns_for_first_copies() -> None:
    """Registered one after the other, more of each than a pool holds."""
    source = np.repeat([1, 2, 3], 2000)
    chosen = policy(6000, source=source, polled_s=np.full(6000, np.nan))
    picker = Picker(chosen)
    rows = [picker.next(NOW, always) for _ in range(300)]
    picker.invalidate()
    rows += [picker.next(NOW, always) for _ in range(300)]
    assert np.bincount(source[np.array(rows, dtype=np.int64)]).tolist() == [0, 200, 200, 200]


def test_every_fourth_poll_is_left_to_rows_that_were_polled_before() -> None:
    """A listing with many new items must not stop all refreshing."""
    polled_s = np.where(np.arange(3000) < 100, 500.0, np.nan)
    chosen = policy(3000, polled_s=polled_s)
    chosen.restore_price(0.5 * float(chosen.ranking.values(NOW, np.arange(3000) < 100)[0]), [])
    picker = Picker(chosen)
    rows = np.array([picker.next(NOW, always) for _ in range(40)], dtype=np.int64)
    assert np.count_nonzero(rows < 100) == 10
    assert rows[:3].min() >= 100


def test_rows_below_the_shadow_price_wait_for_new_rows() -> None:
    chosen = policy(3000, polled_s=np.where(np.arange(3000) < 100, 500.0, np.nan))
    chosen.restore_price(2.0 * float(chosen.ranking.values(NOW, np.arange(3000) < 100)[0]), [])
    picker = Picker(chosen)
    assert min(picker.next(NOW, always) or 0 for _ in range(40)) >= 100


def test_a_requested_row_waits_for_three_new_rows_at_most() -> None:
    chosen = policy(3000, polled_s=np.where(np.arange(3000) < 1, 500.0, np.nan))
    chosen.item_rows.is_requested[0] = True
    picker = Picker(chosen)
    assert [picker.next(NOW, always) == 0 for _ in range(5)] == [False, False, False, True, False]


class SlowRanking:
    """A stopwatch by which each ranking of all rows takes 60 ms, as on a busy machine."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def __call__(self) -> float:
        self.elapsed_s += 0.06
        return self.elapsed_s


def test_an_overdue_row_does_not_wait_for_the_next_pool() -> None:
    """200 polls per second, of 100,000 new rows and of row 0, which is to be polled every 50 ms."""
    is_first = np.arange(100_001) < 1
    chosen = policy(
        is_first.size,
        polled_s=np.where(is_first, NOW, np.nan),
        max_interval_s=np.where(is_first, 0.05, np.inf),
    )
    item_rows = chosen.item_rows
    picker, ends, polled_s = Picker(chosen, SlowRanking()), dict[int, int](), list[float]()
    for step in range(2000):
        now_s = NOW + step / 200
        if step in ends:
            over = np.array([ends.pop(step)])
            item_rows.polled_s[over], item_rows.is_busy[over] = now_s, False
            item_rows.due_s[over] = chosen.next_polls_s(over, now_s)
            picker.record_polled(over, now_s)
        row = picker.next(now_s, always)
        assert row is not None
        ends[step + 8] = row  # its poll and the commit take 40 ms
        if row == 0:
            polled_s.append(now_s)
    assert np.diff([*polled_s, NOW + 10.0]).max() < 0.15


@pytest.mark.parametrize("settled", [False, True])
def test_a_row_whose_next_poll_has_come_does_not_wait_for_the_next_pool(settled: bool) -> None:
    chosen = policy(3000, polled_s=np.where(np.arange(3000) < 1, 500.0, np.nan))
    chosen.restore_price(1e9, [])  # so that the row is in no pool
    picker, item_rows = Picker(chosen), chosen.item_rows
    assert [picker.next(NOW, always) == 0 for _ in range(8)] == [False] * 8
    chosen.settled_sources = frozenset([1]) if settled else frozenset()
    item_rows.due_s[0] = NOW + 0.004
    picker.record_polled(np.array([0]), NOW)
    assert [picker.next(NOW + 0.003, always) == 0 for _ in range(4)] == [False] * 4
    assert any(picker.next(NOW + 0.005, always) == 0 for _ in range(4)) is not settled


def test_a_row_that_is_due_waits_for_its_group() -> None:
    chosen = policy(3000, polled_s=np.where(np.arange(3000) < 2, 500.0, np.nan))
    chosen.item_rows.max_interval_s[:2] = 100.0
    chosen.item_rows.group[0] = 3
    picker = Picker(chosen)
    item_rows = chosen.item_rows
    item_rows.is_busy[:2] = True
    for _ in range(3):
        picker.next(NOW, always)
    item_rows.polled_s[:2] = NOW - 200.0
    item_rows.is_busy[:2] = False
    picker.record_polled(np.arange(2), NOW)
    ready = {2: NOW, 3: NOW + 5}
    rows = [picker.next(NOW, lambda place, _now: ready[place[1]]) for _ in range(5)]
    assert rows[0] == 1
    assert 0 not in rows


def test_a_group_that_is_full_is_not_ranked_anew_at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, asked = policy(600), list[float]()
    priorities = chosen.priorities

    def noted(now_s: float) -> Priorities:
        asked.append(now_s)
        return priorities(now_s)

    monkeypatch.setattr(chosen, "priorities", noted)
    picker = Picker(chosen)
    full = lambda _place, _now: math.inf  # noqa: E731
    assert [picker.next(NOW + step / 100, full) for step in range(40)] == [None] * 40
    assert asked == [NOW]
    picker.release_group((1, 2))
    assert picker.next(NOW + 0.4, always) is not None
    assert picker.next(NOW + 0.6, full) is None  # but for what has become worth more meanwhile
    assert asked == [NOW, NOW + 0.6]


def test_rows_that_were_all_under_way_are_picked_again_as_soon_as_a_poll_ends() -> None:
    chosen = policy(3)
    picker = Picker(chosen)
    rows = [picker.next(NOW, always) for _ in range(3)]
    assert picker.next(NOW + 0.02, always) is None  # this pool is empty
    chosen.item_rows.is_busy[rows[0]] = False
    assert picker.next(NOW + 0.04, always) == rows[0]


def test_a_group_whose_rows_in_the_pool_are_gone_waits_for_no_other() -> None:
    count = 40_000
    group = np.where(np.arange(count) % 400 == 0, 3, 2)
    chosen = policy(count, group=group)
    picker = Picker(chosen)
    only_three = lambda place, now_s: now_s if place[1] == 3 else now_s + 60.0  # noqa: E731
    picked = [picker.next(NOW + step / 20, only_three) for step in range(100)]
    rows = [row for row in picked if row is not None]
    assert len(set(rows)) == len(rows) >= 95
    assert set(group[np.array(rows)].tolist()) == {3}


def test_a_pool_holds_whole_bulks() -> None:
    chosen = policy(6000)
    picker = Picker(chosen)
    ready = lambda _, now_s: now_s  # noqa: E731
    sizes = []
    for turn in range(3):
        picker.invalidate()
        row = picker.next(NOW + turn, ready)
        assert row is not None
        sizes.append(1 + len(picker.take_more(chosen.item_rows.group_key(row), 999)))
    assert sizes[1:] == [1000, 1000]


def test_edits_are_followed() -> None:
    chosen = policy(3)
    item_rows = chosen.item_rows
    item_rows.not_before_s[1] = 5000.0
    now = columns(2, first_id=2, weight=np.array([7.0, 1.0]), due_s=np.array([940.0, 950.0]))
    item_rows.edit((1, 2, 3), now, NOW)
    assert item_rows.is_active.tolist() == [False, True, True]
    assert item_rows.weight.tolist() == [1.0, 7.0, 1.0]
    assert item_rows.is_requested.tolist() == [False, True, False]  # made due by hand
    assert item_rows.not_before_s[1] == -np.inf
    paused = np.full(1, STATUSES.index("paused"), dtype=np.int8)
    item_rows.edit((3,), columns(1, first_id=3, status=paused), NOW)
    assert not item_rows.is_active[2]


def test_what_is_overdue_can_be_asked_for_too() -> None:
    item_rows = policy(3).item_rows
    item_rows.due_s[:] = NOW - 500.0, NOW + 500.0, NOW - 500.0
    due_s = np.array([NOW - 0.5, NOW + 90.0, NOW - 500.0])  # by hand; by another engine; as it was
    item_rows.edit((1, 2, 3), columns(3, due_s=due_s), NOW)
    assert item_rows.is_requested.tolist() == [True, False, False]


def test_audits_are_drawn_by_weight_alone() -> None:
    chosen = policy(4, weight=np.array([1.0, 2.0, 3.0, 0.0]))
    rng = np.random.default_rng(1)
    rows = [draw(chosen.item_rows, rng, np.inf) for _ in range(6000)]
    share = np.bincount([row for row in rows if row is not None], minlength=4) / len(rows)
    assert share == pytest.approx([1 / 6, 2 / 6, 3 / 6, 0.0], abs=0.03)


def test_wilson_covers() -> None:
    rng = np.random.default_rng(2)
    for truth in (0.5, 0.9, 0.98):
        shares = [wilson_interval(int(rng.binomial(100, truth)), 100) for _ in range(2000)]
        covered_share = np.mean([share.low <= truth <= share.high for share in shares])
        assert 0.92 < covered_share < 0.985


def test_audited_freshness_leaves_out_first_looks_and_old_audits() -> None:
    elapsed = np.array([0.0] + [10.0] * 400)
    times = np.r_[0.0, np.arange(400.0) * 1000.0]
    changed = np.r_[False, np.arange(400) < 200]  # stale long ago, fresh of late
    nothing = np.full(401, np.nan)
    audits = ObservationColumns(
        np.ones(401, dtype=np.int64), times, elapsed, changed, nothing, nothing, changed
    )
    found = audited_freshness(audits, now_s=400_000.0, covered_share=0.5)
    assert (found.n, found.value) == (200, 0.5)
