"""The rate that people are shown: what ``estimate`` finds on the same polls, also after it jumped."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.sources.polling import SetClock

from afresh.cli.planning.estimate_command import EstimateOptions
from afresh.cli.planning.poll_log_rates import estimate_log
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.reporting import item_snapshot
from afresh.engine.reporting.export import write_polls
from afresh.engine.reporting.item_snapshot import estimate_items, take_snapshot
from afresh.engine.reporting.own_rates import OwnRate
from afresh.engine.reporting.rate_words import TOO_OFTEN, explain_difference
from afresh.engine.settings.parsing import parse_settings
from afresh.rates import item_sample
from afresh.rates.estimator import estimate_polls
from afresh.rates.poll_table import polls_from_times
from afresh.rates.sharp_changes import find_sharp_changes
from afresh.tables.input_file import InputFile
from afresh.values.items import NewItem

NOW_S, DAY_S = 1.6e9, 86400.0
KEYS = [f"https://h/{name}" for name in range(4)]


def estimate_file(path: Path) -> dict[str, tuple[float, float, float]]:
    """What the command ``afresh estimate`` writes of the polls at ``path``, in changes per second."""
    rates = path.with_name("rates.csv")
    options = EstimateOptions(polls=str(path), output=str(rates))
    estimate_log(str(path), options)
    with rates.open() as file:
        rows = list(csv.DictReader(file))
    return {row["item"]: tuple(float(row[name]) / DAY_S for name in ("rate", "low", "high")) for row in rows}  # type: ignore[misc]


def observe_few(engine: Engine, keys: list[str], seed: int) -> None:
    """Observe two to six polls of each item, some with stamps; half of the pages change daily."""
    rng, rows = np.random.default_rng(seed), []
    for number, key in enumerate(keys):
        rate = 1.0 if number % 2 else 0.02
        changes = np.sort(NOW_S - DAY_S * rng.uniform(0, 40, rng.poisson(40 * rate)))
        before_s = -np.inf
        for poll_s in NOW_S - DAY_S * 5.0 * np.arange(rng.integers(2, 7))[::-1]:
            seen = changes[changes <= poll_s]
            changed = bool(np.isfinite(before_s) and seen.size and seen[-1] > before_s)
            stamp = float(seen[-1]) if seen.size and number % 3 == 0 else None
            rows.append(Reported(key, poll_s, changed=changed, modified_s=stamp))
            before_s = poll_s
    engine.observe(sorted(rows, key=lambda row: row.time_s))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    settings = parse_settings("[budget]\nrequests = '1/d'", {"store.url": "memory:"})
    made = make_engine(settings, tmp_path, clock=SetClock(NOW_S), seed=1)
    made.add(KEYS)
    yield made
    made.close()


def estimated(engine: Engine, path: Path) -> dict[str, tuple[float, float, float]]:
    """What ``afresh estimate`` finds on the exported polls, in changes per second."""
    from afresh.cli.planning.poll_log import read_polls

    write_polls(engine.store, str(path))
    with InputFile(str(path)) as source:
        log = read_polls(source, now_s=NOW_S + 1.0)
    modified = None if log.modified_s is None else log.modified_s - NOW_S
    times_s = log.time_s - NOW_S
    polls = polls_from_times(log.item, times_s, log.changed, modified=modified, count=log.count)
    found = estimate_polls(find_sharp_changes(polls).weigh(polls))
    rates = zip(found.rate.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    return dict(zip(log.names.tolist(), rates, strict=True))


def test_after_few_polls_why_and_estimate_show_the_same(engine: Engine, tmp_path: Path) -> None:
    """They differed by up to sixteen times, because each had its own prior, and one showed the median."""
    keys = [f"https://few/{number}" for number in range(30)]
    engine.add(keys)
    observe_few(engine, keys, seed=2)
    write_polls(engine.store, str(tmp_path / "polls.csv"))
    rates = estimate_file(tmp_path / "polls.csv")
    for key in keys[:6]:
        why = engine.why(key)
        assert (why.rate_per_s, why.rate_low, why.rate_high) == pytest.approx(rates[key], rel=1e-6)


def test_of_some_hundred_items_with_few_polls_why_and_estimate_show_the_same(
    engine: Engine, tmp_path: Path
) -> None:
    """With a sample of a hundred they differed by up to half."""
    keys = [f"https://many/{number}" for number in range(300)]
    engine.add(keys)
    observe_few(engine, keys, seed=4)
    write_polls(engine.store, str(tmp_path / "polls.csv"))
    rates = estimate_file(tmp_path / "polls.csv")
    for key in keys[:4]:
        assert engine.why(key).rate_per_s == pytest.approx(rates[key][0], rel=1e-6)


def test_of_more_items_than_the_sample_why_and_estimate_show_the_same(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both learn the prior from the same items, by the hashes of their keys. With samples of their own they
    differed by 13 to 16 % in the median."""
    monkeypatch.setattr(item_sample, "MOST_OF_PRIOR", 150)
    keys = [f"https://many/{number}" for number in range(300)]
    engine.add([*keys, *(f"https://never/{number}" for number in range(200))])
    observe_few(engine, keys, seed=4)
    write_polls(engine.store, str(tmp_path / "polls.csv"))
    rates = estimate_file(tmp_path / "polls.csv")
    for key in keys[:9]:
        assert engine.why(key).rate_per_s == pytest.approx(rates[key][0], rel=0.01)
    monkeypatch.setattr(item_snapshot, "_LOADED_WHOLE", 100)  # as in a store with thousands of items
    for key in keys[:9]:
        assert engine.why(key).rate_per_s == pytest.approx(rates[key][0], rel=0.01)


def test_a_guess_counts_while_polls_are_few(engine: Engine) -> None:
    engine.store.items.add([NewItem("https://g/1", "web", "g", prior_rate_per_s=3.0 / DAY_S)], NOW_S)
    assert engine.why("https://g/1").rate_per_s > 1.3 * engine.why(KEYS[0]).rate_per_s
    observe_few(engine, KEYS, seed=1)
    guessed, without = engine.why("https://g/1"), engine.why(KEYS[0])
    assert 0.5 < guessed.rate_per_s * DAY_S < 6.0
    assert guessed.rate_per_s > 2.0 * without.rate_per_s


@pytest.mark.parametrize("polls_s", [0.2, 3600.0])
def test_a_guess_far_below_all_rates_that_polls_can_show_is_no_obstacle(
    engine: Engine, polls_s: float
) -> None:
    """Ten changes a year are guessed of an item that is polled every few seconds at first."""
    key = "https://g/rare"
    engine.store.items.add([NewItem(key, "web", "g", prior_rate_per_s=10 / (365.25 * DAY_S))], NOW_S)
    for count in (0, 30):
        engine.observe([Reported(key, NOW_S - polls_s * (count - at), changed=False) for at in range(count)])
        found = engine.why(key)
        assert 0 < found.rate_low < found.rate_per_s < found.rate_high < np.inf


def test_with_stamps_or_counts_the_rate_is_known_though_every_poll_finds_a_change(
    engine: Engine, tmp_path: Path
) -> None:
    """By bits alone, pages with 1, 2 and 5 changes a day look alike if they are polled every fourth day."""
    rng, rows = np.random.default_rng(3), []
    for key, rate, is_counted in zip(KEYS, (1.0, 2.0, 5.0, 5.0), (False, False, False, True), strict=True):
        changes = np.sort(NOW_S - DAY_S * rng.uniform(0, 400, rng.poisson(400 * rate)))
        for poll_s in NOW_S - DAY_S * np.arange(0, 397, 4)[::-1]:
            last_s = changes[changes <= poll_s].max()
            count = int(np.count_nonzero((changes > poll_s - 4 * DAY_S) & (changes <= poll_s)))
            rows.append(
                Reported(key, poll_s, changed=count > 0, count=count)
                if is_counted
                else Reported(key, poll_s, changed=count > 0, modified_s=last_s)
            )
    engine.observe(rows)
    log = estimated(engine, tmp_path / "polls.csv")
    for key, rate in zip(KEYS, (1.0, 2.0, 5.0, 5.0), strict=True):
        why = engine.why(key)
        assert why.rate_per_s * DAY_S == pytest.approx(rate, rel=0.3)
        assert why.rate_low * DAY_S < rate < why.rate_high * DAY_S
        assert why.rate_per_s == pytest.approx(log[key][0], rel=0.15)


def test_after_a_jump_of_the_rate_only_later_polls_count(engine: Engine, tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(5), []
    for key in KEYS[:2]:
        for day in range(200, 0, -2):
            rate = 0.02 if day > 60 else 1.5
            rows.append(Reported(key, NOW_S - day * DAY_S, changed=rng.random() < -np.expm1(-2 * rate)))
    engine.observe(rows)
    log = estimated(engine, tmp_path / "polls.csv")
    for key in KEYS[:2]:
        why = engine.why(key)
        assert why.rate_low * DAY_S < 1.5 < why.rate_high * DAY_S
        assert why.rate_per_s == pytest.approx(log[key][0], rel=0.3)
        assert NOW_S - 62 * DAY_S < why.jumped_s < NOW_S - 44 * DAY_S
        assert why.period_s == pytest.approx(60 * DAY_S, rel=0.3)
        assert any(words.startswith("its rate changed sharply before 20") for words in why.reasons)


def test_a_jump_of_all_items_together_is_known_from_all_of_them(engine: Engine) -> None:
    """Each rate rose from 0.05 to 0.6 a day 16 days ago, which eight polls of one item alone hardly show. By
    the polls of each item alone, a quarter of the intervals covered the rate of today."""
    rng, keys, rows = np.random.default_rng(8), [f"https://all/{name}" for name in range(60)], []
    engine.add(keys)
    for key in keys:
        for day in range(200, 0, -2):
            rate = 0.05 if day > 16 else 0.6
            rows.append(Reported(key, NOW_S - day * DAY_S, changed=rng.random() < -np.expm1(-2 * rate)))
    engine.observe(rows)
    whys = [engine.why(key) for key in keys[::6]]
    covered = [why.rate_low * DAY_S < 0.6 < why.rate_high * DAY_S for why in whys]
    assert np.mean(covered) >= 0.8
    jumped_s = np.array([why.jumped_s for why in whys])
    assert np.mean(np.abs(NOW_S - 16 * DAY_S - jumped_s) < 6 * DAY_S) >= 0.8


def test_a_steady_item_has_no_jump_and_the_whole_time_is_its_period(engine: Engine) -> None:
    rows = [Reported(KEYS[0], NOW_S - day * DAY_S, changed=day % 3 == 0) for day in range(60, 0, -1)]
    engine.observe(rows)
    why = engine.why(KEYS[0])
    assert np.isnan(why.jumped_s)
    assert why.period_s == pytest.approx(59 * DAY_S)


def test_an_item_is_shown_the_same_rate_whatever_is_shown_beside_it(engine: Engine) -> None:
    rows = [Reported(KEYS[0], NOW_S - day * DAY_S, changed=day % 3 == 0) for day in range(60, 0, -1)]
    rows += [Reported(KEYS[1], NOW_S - day * DAY_S, changed=day < 20) for day in range(60, 0, -1)]
    engine.observe(rows)
    alone = engine.why(KEYS[0])
    items = engine.store.items.by_id([1, 2])
    together = estimate_items(take_snapshot(engine.store, engine.current(), items, NOW_S))
    assert together[0].rate_per_s == pytest.approx(alone.rate_per_s, rel=1e-9)


def test_a_dropped_item_is_not_said_to_change_often_if_its_own_polls_deny_it() -> None:
    year_s = 365.25 * DAY_S
    shown = OwnRate(39 / year_s, 23 / year_s, 61 / year_s)
    assert explain_difference([f"dropped: {TOO_OFTEN}"], shown, 548 / year_s) == [
        "dropped: the policy expects 1.5 changes a day, so that a poll gains little"
    ]
    assert explain_difference(["due now"], shown, 548 / year_s)[1].startswith(
        "polls are planned for 1.5 changes"
    )
