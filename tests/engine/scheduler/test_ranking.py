"""The adaptive policy inside the engine: it learns, grows, is kept, and survives clocks set back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.scheduler.test_picker import NOW, columns, policy

from afresh.allocation.objectives import OBJECTIVES
from afresh.engine.scheduler import stored_beliefs
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.ranking import Ranking, RankingStart
from afresh.engine.scheduler.restore import pack_learned, unpack_learned
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.policy.adaptive.saved_state import without_items
from afresh.values.arrays import Float64s

BUDGET = 0.1


def teach(chosen: RowPolicy, changing: int, rounds: int, start_s: float = NOW) -> float:
    """Poll all rows at even times; one of them has always changed."""
    rows, now_s, elapsed_s = np.arange(chosen.item_rows.size), start_s, 10.0
    for _ in range(rounds):
        now_s += elapsed_s
        every = np.full(rows.size, now_s)
        chosen.ranking.learn(rows, every, np.full(rows.size, elapsed_s), rows == changing)
        chosen.item_rows.polled_s[:] = now_s
    return now_s


def again(taught: RowPolicy, now_s: float, **given: Any) -> RowPolicy:
    """The policy of a new process, from what the store keeps."""
    rows = np.arange(taught.item_rows.size)
    kept = taught.ranking.pack(rows)
    sizes = np.array([len(belief) for belief in kept])
    item_rows = ItemRows()
    item_rows.load(
        [
            columns(
                rows.size,
                belief_size=sizes,
                beliefs=b"".join(kept),
                polled_s=taught.item_rows.polled_s,
                **given,
            )
        ]
    )
    shared = unpack_learned(pack_learned(taught.ranking.shared()))
    return RowPolicy(Ranking(item_rows, RankingStart(BUDGET, "freshness", now_s, shared=shared)), "adaptive")


def test_what_changes_is_worth_more() -> None:
    chosen = policy(3)
    now_s = teach(chosen, changing=1, rounds=20)
    assert int(np.argmax(chosen.poll_values(now_s + 5.0))) == 1


def test_a_new_process_ranks_as_the_one_before() -> None:
    taught = policy(40, weight=np.linspace(1.0, 3.0, 40))
    now_s = teach(taught, changing=1, rounds=60)  # past several refits
    after = again(taught, now_s, weight=np.linspace(1.0, 3.0, 40))
    before = taught.poll_values(now_s + 30.0)
    assert after.poll_values(now_s + 30.0) == pytest.approx(before, rel=2e-3)
    assert np.argsort(-after.poll_values(now_s + 30.0)).tolist() == np.argsort(-before).tolist()
    assert Forecast(after).mean_freshness(now_s + 30.0) == pytest.approx(
        Forecast(taught).mean_freshness(now_s + 30.0), rel=1e-3
    )
    assert after.ranking.adaptive.rates() == pytest.approx(taught.ranking.adaptive.rates(), rel=2e-3)


def test_a_new_process_knows_how_often_items_were_polled() -> None:
    """Otherwise all items would count as new, and be polled after one interval whatever they gain."""
    taught = policy(40)
    now_s = teach(taught, changing=1, rounds=60)
    teach(taught, changing=1, rounds=1, start_s=now_s)
    after, rows = again(taught, now_s + 10.0), np.arange(40)
    waits_s = after.ranking.adaptive.longest_wait(rows)
    assert waits_s.tolist() == taught.ranking.adaptive.longest_wait(rows).tolist()
    assert after.ranking.review_waits_s(rows).tolist() == waits_s.tolist()  # more than ten intervals
    reviews = taught.ranking.adaptive.next_review
    assert after.ranking.adaptive.next_review == pytest.approx(reviews, rel=1e-6, abs=1e-3)


def test_polls_of_another_engine_count_for_the_longest_wait() -> None:
    taught, other = policy(3), policy(3)
    now_s = teach(taught, changing=1, rounds=30)
    kept, rows = taught.ranking.pack(np.arange(3)), np.arange(3)
    other.ranking.adopt_stored_beliefs(
        rows, np.full(3, now_s), b"".join(kept), np.array([len(one) for one in kept])
    )
    waits_s = [one.ranking.adaptive.longest_wait(rows).tolist() for one in (taught, other)]
    assert waits_s[0] == waits_s[1]


def test_beliefs_kept_before_the_prior_was_learned_meet_it_later() -> None:
    taught = policy(40)
    now_s = teach(taught, changing=1, rounds=3)
    early = taught.ranking.pack(np.arange(20))
    now_s = teach(taught, changing=1, rounds=60, start_s=now_s)
    late = taught.ranking.pack(np.arange(20, 40))
    sizes = np.array([len(belief) for belief in early + late])
    item_rows = ItemRows()
    item_rows.load(
        [columns(40, belief_size=sizes, beliefs=b"".join(early + late), polled_s=np.full(40, now_s))]
    )
    ranking = Ranking(item_rows, RankingStart(BUDGET, "freshness", now_s, shared=taught.ranking.shared()))
    rates = ranking.adaptive.rates()
    assert rates[1] > rates[0] > rates[39]  # fewer polls without a change: less sure that it is slow


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 3), st.integers(0, 2**32))
def test_beliefs_survive_packing(count: int, kinds: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = {
        "evidence": rng.gamma(0.3, size=(count, 18)) + 1e-20,
        "lowest": np.full(count, 1e-7),
        "rate_class": rng.integers(0, 13, count),
        "spared": rng.choice([0.25, np.inf], count),
        "quiet": rng.integers(0, 100_000, count),
        "polls": rng.integers(0, 100_000, count),
        "shocks.exposed": rng.gamma(1.0, size=count),
        "shocks.felt": rng.gamma(1.0, size=count),
        "age": rng.integers(-128, 128, count),
    }
    not_before_s: Float64s = rng.normal(size=count)
    families = rng.integers(-1, 2**47, (count, kinds))
    kept = stored_beliefs.pack(rows, not_before_s, families)
    some = [belief if place % 3 else b"" for place, belief in enumerate(kept)]
    found = stored_beliefs.unpack(b"".join(some), np.array([len(belief) for belief in some]))
    assert found.known.tolist() == [place for place in range(count) if place % 3]
    assert found.not_before_s[found.known].tolist() == not_before_s[found.known].tolist()
    assert found.families.tolist() == families[found.known].tolist() or not found.known.size
    if found.known.size:
        whole = rows["evidence"][found.known]
        whole = whole / whole.max(axis=1, keepdims=True)
        assert found.rows["evidence"] == pytest.approx(whole, rel=1e-4, abs=1e-25)
        for name in ("quiet", "polls"):
            assert found.rows[name].tolist() == np.minimum(rows[name], 65535)[found.known].tolist()
        assert found.rows["age"].tolist() == rows["age"][found.known].tolist()
        for name in ("shocks.exposed", "shocks.felt"):
            assert found.rows[name] == pytest.approx(rows[name][found.known], rel=1e-6)


def test_beliefs_of_the_version_before_are_read_beside_those_of_today() -> None:
    """After an upgrade a store has both, until every item was polled again."""
    count, kinds, rng = 5, 2, np.random.default_rng(1)
    rows = {
        "evidence": rng.gamma(0.3, size=(count, 18)) + 1e-20,
        "lowest": np.full(count, 1e-7),
        "rate_class": np.arange(count),
        "spared": np.zeros(count),
        "quiet": 10 * np.arange(count),
        "polls": np.full(count, 7),
        "shocks.exposed": np.full(count, 2.0),
        "shocks.felt": np.full(count, 3.0),
        "age": np.full(count, -5),
    }
    kept = stored_beliefs.pack(rows, np.arange(5.0), rng.integers(-1, 99, (count, kinds)))
    for older in ([], [1], [0, 3, 4], [0, 1, 2, 3, 4]):
        # Version 3 had the same fields but for the age at the end, of one byte; version 2 also lacked the
        # three numbers before it, of two, four and four bytes.
        mixed = [b"\x02" + one[1:-11] if place in older else one for place, one in enumerate(kept)]
        mixed[2] = b"\x03" + kept[2][1:-1] if 2 not in older else mixed[2]
        found = stored_beliefs.unpack(b"".join(mixed), np.array([len(one) for one in mixed]))
        assert found.known.tolist() == list(range(count))
        assert found.not_before_s.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert found.rows["quiet"].tolist() == rows["quiet"].tolist()
        assert found.rows["shocks.felt"].tolist() == [0.0 if one in older else 3.0 for one in range(count)]
        # Nobody counted the polls then. Such an item is no new one, so it may wait long.
        assert found.rows["polls"].tolist() == [100 if one in older else 7 for one in range(count)]
        assert found.rows["age"].tolist() == [-128 if one in [*older, 2] else -5 for one in range(count)]


def test_what_is_not_ours_tells_nothing() -> None:
    found = stored_beliefs.unpack(b"x" * 90, np.array([40, 50]))
    assert found.known.size == 0
    assert unpack_learned(b"nonsense") is None
    assert unpack_learned(pack_learned({"version": np.array(99)})) is None


def test_items_that_come_later_are_valued_too() -> None:
    chosen = policy(2)
    chosen.item_rows.load([columns(2, first_id=3)])
    assert np.isfinite(chosen.poll_values(NOW + 50.0)).all()
    chosen.ranking.learn(np.array([3]), np.array([NOW + 60.0]), np.array([60.0]), np.array([True]))
    assert np.isfinite(chosen.poll_values(NOW + 70.0)).all()


def test_many_more_items_get_another_ladder_and_keep_what_was_learned() -> None:
    chosen, rows, now_s = policy(2), np.arange(2), NOW
    for step in range(1, 60):
        now_s = NOW + 10.0 * step
        changed = np.array([False, step % 2 == 0])
        chosen.ranking.learn(rows, np.full(2, now_s), np.full(2, 10.0), changed)
    before = chosen.ranking.adaptive.rates()
    chosen.item_rows.load([columns(20, first_id=3, polled_s=np.full(20, now_s))])
    chosen.ranking.grow()
    assert chosen.ranking.needs_new_grid()
    chosen.ranking.rebuild(BUDGET, [f"a/{row}" for row in range(22)])
    assert not chosen.ranking.needs_new_grid()
    assert chosen.ranking.adaptive.rates()[1] > 5 * chosen.ranking.adaptive.rates()[0]
    assert chosen.ranking.adaptive.rates()[1] == pytest.approx(before[1], rel=0.5)
    assert chosen.ranking.families.shape == (22, 3)


def family_time(ranking: Ranking, name: str) -> float:
    """How long the family of the directory ``name``, whose rows are half of all, was observed."""
    shocks, half = ranking.adaptive.shocks, ranking.item_rows.size // 2
    assert shocks is not None
    return float(shocks.total_seen[shocks.family_row[0 if name == "a" else half, 1]])


def test_rows_that_are_forgotten_take_no_season_and_no_other_family_with_them() -> None:
    item_rows = ItemRows()
    item_rows.load([columns(16)])
    names = [f"{name}/{row}" for name in "ab" for row in range(8)]
    chosen = RowPolicy(Ranking(item_rows, RankingStart(BUDGET, "freshness", NOW, names=names)), "adaptive")
    now_s = teach(chosen, changing=1, rounds=30)
    teach(chosen, changing=9, rounds=30, start_s=now_s)
    ranking, clock = chosen.ranking, chosen.ranking.adaptive.clock
    assert clock.season is not None
    profile = np.roll(clock.season.profile, 5) * np.linspace(0.5, 1.5, clock.season.profile.size)
    clock.season = replace(clock.season, profile=profile, gain=9.0)
    before, polls = family_time(ranking, "a"), clock.recent_count
    assert before > 0
    assert family_time(ranking, "b") > 0
    saved = ranking.shared()
    for learned in (saved, without_items(saved, np.arange(8, 16), ranking.families[8:])):
        ranking.adopt_learned(learned)
    assert family_time(ranking, "a") == before
    assert family_time(ranking, "b") == 0.0
    assert ranking.adaptive.clock.recent_count == polls / 2
    ranking.adopt_learned(saved)
    ranking.rebuild(BUDGET, None, forgotten=np.arange(8, 16))
    assert family_time(ranking, "a") == before
    assert family_time(ranking, "b") == 0.0
    assert ranking.adaptive.clock.recent_count == polls / 2
    assert ranking.adaptive.clock.season is not None
    assert ranking.adaptive.clock.season.profile == pytest.approx(profile)


def taught_about_all_items() -> Ranking:
    """A ranking of enough items for the general family, which has learned from polls."""
    item_rows = ItemRows()
    item_rows.load([columns(24)])
    names = [f"{'ab'[row % 2]}/{row}" for row in range(24)]
    chosen = RowPolicy(Ranking(item_rows, RankingStart(BUDGET, "freshness", NOW, names=names)), "adaptive")
    teach(chosen, changing=1, rounds=10)
    return chosen.ranking


def test_what_forgotten_rows_taught_about_all_items_together_goes_with_them() -> None:
    ranking = taught_about_all_items()
    shocks = ranking.adaptive.shocks
    assert shocks is not None
    general = shocks.family_row[0, -1]
    assert np.all(shocks.family_row[:, -1] == general)
    assert shocks.total_seen[general] > 0
    ranking.adopt_learned(without_items(ranking.shared(), np.arange(2), ranking.families[:2]))
    shocks = ranking.adaptive.shocks
    assert shocks is not None
    assert shocks.total_seen[shocks.family_row[0, -1]] == 0.0


def test_rates_of_plans_count_shocks_as_far_as_families_are_trusted() -> None:
    ranking = taught_about_all_items()
    rows, adaptive = np.arange(24), ranking.adaptive
    assert adaptive.shocks is not None
    for support, share in ((-20.0, 0.0), (0.0, 0.5), (20.0, 1.0)):
        adaptive.shocks.support = support
        own = adaptive.belief.rates[0] * adaptive.own_factors(rows)
        added = ranking.possible_rates(rows)[:, 0] - own
        assert added == pytest.approx(share * adaptive.shocks.rate(rows), rel=1e-6, abs=1e-12)
    assert np.all(adaptive.shocks.rate(rows) > 0)


def test_weights_follow_and_what_is_not_polled_is_worth_nothing() -> None:
    chosen = policy(3)
    chosen.item_rows.weight[1] = 10.0
    chosen.item_rows.is_active[2] = False
    chosen.ranking.update_weights(np.array([1, 2]))
    value = chosen.ranking.values(NOW + 100.0)
    assert value[1] == pytest.approx(10.0 * value[0])
    assert value[2] == 0.0


def test_notices_that_are_true_make_an_item_urgent_and_false_ones_do_not() -> None:
    chosen = policy(6, source=np.array([1, 1, 1, 4, 4, 4]))
    rows, now_s = np.arange(6), NOW
    for step in range(60):
        now_s += 10.0
        changed = np.zeros(6, dtype=bool)
        changed[step % 3] = step % 2 == 0
        if changed.any():
            chosen.ranking.notice(np.array([step % 3]), now_s, "true")
        chosen.ranking.notice(np.array([3 + step % 3]), now_s, "false")
        chosen.ranking.learn(rows, np.full(6, now_s), np.full(6, 10.0), changed)
    assert chosen.ranking.followed_notices("true") == 30.0
    assert chosen.ranking.followed_notices("nobody") == 0.0
    quiet = chosen.ranking.values(now_s + 10.0)
    chosen.ranking.notice(np.array([0]), now_s + 10.0, "true")
    chosen.ranking.notice(np.array([3]), now_s + 10.0, "false")
    told = chosen.ranking.values(now_s + 10.0)
    assert told[0] > 3.0 * quiet[0]
    assert told[3] < 1.5 * quiet[3]


def test_hosts_whose_notices_lie_are_told_from_those_that_are_right() -> None:
    hosts = np.array([5, 5, 5, 9, 9, 9])
    chosen = policy(3, group=hosts[:3])
    chosen.item_rows.load([columns(3, first_id=4, group=hosts[3:])])  # items that are added have hosts too
    rows, now_s = np.arange(6), NOW
    for step in range(60):
        now_s += 10.0
        changed = np.zeros(6, dtype=bool)
        changed[[step % 3, 3 + step % 3]] = step % 2 == 0
        told = np.concatenate([np.flatnonzero(changed[:3]), [3 + (step + 1) % 3]])
        chosen.ranking.notice(told, now_s, "sitemap")
        chosen.ranking.learn(rows, np.full(6, now_s), np.full(6, 10.0), changed)
    quiet = chosen.ranking.values(now_s + 10.0)
    chosen.ranking.notice(np.array([0, 3]), now_s + 10.0, "sitemap")
    told = chosen.ranking.values(now_s + 10.0)
    assert told[0] > 3.0 * quiet[0]
    assert told[3] < 1.5 * quiet[3]
    chosen.ranking.rebuild(BUDGET, None)  # what was learned of each host outlives another grid of rates
    again = chosen.ranking.adaptive.notices.host_rates(np.array([0, 3]))
    assert again[0][0, 0] > 0.5 > 0.2 > again[0][1, 0]


def test_notices_that_wait_keep_their_origin_when_another_engine_is_followed() -> None:
    mine, other = policy(4), policy(4)
    mine.ranking.notice(np.array([0]), NOW, "feed")
    mine.ranking.notice(np.array([1, 1]), NOW, "sitemap")
    other.ranking.notice(np.array([3]), NOW, "sitemap")
    mine.ranking.adopt_learned(other.ranking.shared())
    notices = mine.ranking.adaptive.notices
    assert notices.origins == ["sitemap", "feed"]
    assert notices.pending.tolist() == [[0, 1], [2, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize("objective", sorted({name for name, _ in OBJECTIVES}))
def test_every_objective_ranks_and_gives_due_times(objective: str) -> None:
    item_rows = ItemRows()
    item_rows.load([columns(5)])
    chosen = RowPolicy(Ranking(item_rows, RankingStart(BUDGET, objective, NOW)), "adaptive")
    now_s = teach(chosen, changing=1, rounds=20)
    worth = chosen.poll_values(now_s + 20.0)
    assert (worth > 0).all()
    chosen.record_pick(float(np.median(worth)))
    due_s = chosen.next_polls_s(np.arange(5), now_s)
    assert (due_s > now_s).all()


def test_another_objective_keeps_what_was_learned() -> None:
    chosen = policy(5)
    now_s = teach(chosen, changing=1, rounds=30)
    rates = chosen.ranking.adaptive.rates()
    chosen.ranking.set_objective("age")
    assert (chosen.ranking.objective, int(np.argmax(chosen.poll_values(now_s + 5.0)))) == ("age", 1)
    assert chosen.ranking.adaptive.rates() == pytest.approx(rates, rel=0.5)


def test_a_part_is_valued_as_in_the_whole() -> None:
    taught = policy(40)
    now_s = teach(taught, changing=1, rounds=40)
    item_rows = ItemRows()
    kept = taught.ranking.pack(np.array([1]))
    item_rows.load([columns(1, first_id=2, belief_size=np.array([len(kept[0])]), beliefs=kept[0])])
    item_rows.polled_s[:] = now_s
    part = Ranking(
        item_rows,
        RankingStart(BUDGET, "freshness", now_s, shared=taught.ranking.shared(), total_items=40),
    )
    assert part.values(now_s + 9.0) == pytest.approx(taught.ranking.values(now_s + 9.0)[1:2], rel=2e-3)
    median = Forecast(RowPolicy(part, "adaptive")).median_rates(np.array([0]))
    assert median == pytest.approx(Forecast(taught).median_rates(np.array([1])), rel=2e-3)


def test_a_clock_set_back_stops_nothing() -> None:
    chosen = policy(4)
    now_s = teach(chosen, changing=1, rounds=5)
    chosen.poll_values(now_s + 20.0)
    back_s = now_s + 20.0 - 3600.0
    chosen.item_rows.polled_s[:] = np.minimum(chosen.item_rows.polled_s, back_s)
    chosen.ranking.shift_s += 3600.0
    rows = np.arange(3)
    chosen.ranking.learn(rows, np.full(3, back_s + 1.0), np.ones(3), np.zeros(3, dtype=bool))
    soon, later = (Forecast(chosen).fresh(back_s + after_s) for after_s in (2.0, 300.0))
    assert (later[:3] < soon[:3]).all()  # time goes on where it stood
    assert np.isfinite(chosen.poll_values(back_s + 30.0)).all()


def test_of_many_items_the_most_urgent_are_valued_and_the_others_roughly() -> None:
    count = 12_000
    chosen = policy(count, weight=np.where(np.arange(count) < 50, 100.0, 1.0))
    worth = chosen.poll_values(NOW + 100.0)
    assert np.isfinite(worth).all()
    assert set(np.argsort(-worth)[:50].tolist()) == set(range(50))


def test_of_very_many_items_a_sample_tells_the_freshness(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    chosen = policy(3000, weight=rng.uniform(0.5, 2.0, 3000))
    now_s = teach(chosen, changing=1, rounds=3)
    chosen.item_rows.polled_s[rng.random(3000) < 0.3] = np.nan
    whole, _ = Forecast(chosen).mean_freshness(now_s + 50.0)
    monkeypatch.setattr("afresh.engine.scheduler.forecast.SAMPLE_ROWS", 500)
    part, error = Forecast(chosen).mean_freshness(now_s + 50.0)
    assert Forecast(chosen).sample_rows().size == 500
    assert 0 < abs(part - whole) < 4.0 * error < 0.2
