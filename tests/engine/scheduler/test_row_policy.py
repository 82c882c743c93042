"""What failed waits its time, also for audits; what never changed is due late, what always did is dropped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.engine.scheduler.test_picker import NOW, policy

from afresh.engine.runner.source_set import retry_after_settings_change
from afresh.engine.scheduler.audits import draw, may_audit
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.sources.http.settings import HttpSettings
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.items import Item, NewItem
from afresh.values.outcome import Outcome


def test_audits_leave_alone_what_is_held() -> None:
    item_rows = policy(4, polled_s=np.array([NOW, NOW, NOW, np.nan])).item_rows
    item_rows.not_before_s[0] = NOW + 60.0
    item_rows.is_active[1] = False
    assert [may_audit(item_rows, row, NOW) for row in range(4)] == [False, False, True, False]
    rng = np.random.default_rng(1)
    assert {draw(item_rows, rng, NOW) for _ in range(20)} <= {2, None}
    assert may_audit(item_rows, 0, NOW + 61.0)


def taught(changes: tuple[bool, ...], guess: float = np.nan) -> RowPolicy:
    """A policy that polled each item forty times, ten seconds apart."""
    chosen = policy(len(changes), prior_rate_per_s=np.full(len(changes), guess))
    rows, now_s = np.arange(len(changes)), NOW
    for _ in range(40):
        now_s += 10.0
        every = np.full(rows.size, now_s)
        chosen.ranking.learn(rows, every, np.full(rows.size, 10.0), np.array(changes))
        chosen.item_rows.polled_s[:] = now_s
    return chosen


def test_what_never_changed_is_due_late_and_what_always_did_is_dropped() -> None:
    chosen = taught((False, True))
    chosen.record_pick(100.0)  # the price: a hundred seconds of freshness
    still, fast = chosen.intervals_s(np.arange(2))
    assert 10.0 < still < np.inf
    assert np.isinf(fast)
    assert Forecast(chosen).dropped_rows().tolist() == [False, True]


def test_no_row_waits_for_ever_also_if_its_weight_is_0() -> None:
    chosen = taught((False, True, True))
    rows, polled_s = np.arange(3), float(chosen.item_rows.polled_s[0])
    chosen.item_rows.weight[2] = 0.0
    chosen.ranking.update_weights(rows)
    chosen.record_pick(100.0)
    next_s = chosen.next_polls_s(rows, polled_s)
    assert np.isfinite(next_s).all()
    dropped_s, unweighted_s = next_s[1:] - polled_s
    assert unweighted_s == pytest.approx(10 * dropped_s)
    assert chosen.poll_values(polled_s + 0.99 * unweighted_s)[2] < 100.0
    assert chosen.poll_values(polled_s + 1.01 * unweighted_s)[2] >= 100.0  # it is polled when it says so


def test_a_wrong_guess_is_refuted_by_polls() -> None:
    day = 86400.0
    chosen = taught((True, False), guess=1.0 / day)
    assert chosen.ranking.adaptive.rates()[0] > 0.05  # changed at each of forty polls, ten seconds apart
    assert chosen.ranking.adaptive.rates()[1] < 0.01


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        yield opened


def failed(store: Store, key: str, problem: str) -> None:
    """A poll of an item that told nothing; the next in an hour."""
    (lease,) = store.leases.take(list(store.items.ids([key]).values()), NOW, 60.0)
    outcome = Outcome(lease=lease, time_s=NOW, due_s=NOW + 3600.0, failures=1, problem=problem)
    store.commit([outcome])


def item(store: Store, key: str) -> Item:
    found = store.items.get(key)
    assert found is not None
    return found


def test_other_settings_that_bear_on_it_have_what_failed_tried_again(store: Store) -> None:
    store.items.add([NewItem(key, "web", "h") for key in ("a", "b")] + [NewItem("c", "other", "h")], NOW)
    strict = HttpSettings(name="web")
    assert retry_after_settings_change(store, strict, NOW) == 0
    for key in ("a", "c"):
        failed(store, key, "refused: it is private")
    assert (
        retry_after_settings_change(store, HttpSettings(name="web", delay=5.0), NOW + 1.0) == 0
    )  # no bearing
    assert item(store, "a").due_s == NOW + 3600.0
    assert retry_after_settings_change(store, HttpSettings(name="web", allow_private=True), NOW + 2.0) == 1
    assert (item(store, "a").due_s, item(store, "a").failures) == (NOW + 2.0, 0)
    assert item(store, "c").due_s == NOW + 3600.0
    assert retry_after_settings_change(store, HttpSettings(name="web", allow_private=True), NOW + 3.0) == 0


def test_no_secret_is_in_what_is_kept_of_settings() -> None:
    settings = HttpSettings(
        name="web", headers={"X": "hunter2"}, cookies={"Y": "hunter2"}, proxy="http://hunter2"
    )
    assert "hunter2" not in settings.access_fingerprint
    assert settings.access_fingerprint != HttpSettings(name="web").access_fingerprint
