"""For those who fetch themselves: leases out, outcomes back, old logs; and the questions one can ask."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from afresh.cli.engine.status_commands import why_rows
from afresh.engine import external_scheduler
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.scheduler import restore
from afresh.engine.scheduler.restore import start_scheduler
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.parsing import parse_settings
from afresh.values.errors import InputError, UsageError
from afresh.values.items import ItemChange
from afresh.values.lease import Lease


class FixedClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time_s = 1e9

    def now_s(self) -> float:
        return self.time_s

    def elapsed_s(self) -> float:
        return self.time_s


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture(params=["memory:", "sqlite:afresh.db"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> Iterator[Engine]:
    settings = parse_settings("[budget]\nrequests = '1/s'\nburst = 3", {"store.url": request.param})
    made = make_engine(settings, tmp_path, clock=clock, seed=1)
    made.add([f"https://h/{name}" for name in "abc"])
    yield made
    made.close()


def test_leases_go_out_and_outcomes_come_back(engine: Engine, clock: FixedClock) -> None:
    leases = engine.due(2, lease_s=600.0)
    assert [lease.key for lease in leases] == ["https://h/a", "https://h/b"]
    assert [item.key for item in engine.due(9)] == ["https://h/c"]
    lease = leases[0]
    assert isinstance(lease, Lease)
    back = engine.observe([Reported(lease.key, clock.time_s, content=b"one", lease=lease.token)])
    assert (back.taken, back.refused) == (1, ())
    copy = engine.get(lease.key)
    assert copy is not None
    assert copy.content == b"one"
    clock.time_s += 1000
    engine.observe([Reported(lease.key, clock.time_s, content=b"two")])
    engine.observe([Reported(lease.key, clock.time_s + 5, content=b"two")])
    item = engine.store.items.get(lease.key)
    assert item is not None
    assert (item.changes, item.version, item.polls) == (1, 2, 3)


def test_a_lease_that_was_lost_is_refused_in_words(engine: Engine, clock: FixedClock) -> None:
    lease = engine.due(1, lease_s=10.0)[0]
    assert isinstance(lease, Lease)
    clock.time_s += 100
    other = engine.due(1, lease_s=10.0)[0]
    assert other.key == lease.key
    back = engine.observe([Reported(lease.key, clock.time_s, content=b"late", lease=lease.token)])
    assert back.taken == 0
    assert "another worker" in back.refused[0]
    assert engine.get(lease.key) is None


def test_a_bit_alone_will_do(engine: Engine, clock: FixedClock) -> None:
    for step, changed in enumerate((False, True, False)):
        lease = engine.store.leases.take([1], clock.time_s, 60.0)[0]
        reported = Reported(lease.key, clock.time_s, changed=changed, lease=lease.token)
        assert engine.observe([reported]).taken == 1, step
        clock.time_s += 100
    item = engine.store.items.by_id([1])[0]
    assert (item.polls, item.changes, item.version) == (3, 1, 0)


def test_old_logs_teach(engine: Engine, clock: FixedClock) -> None:
    rows = [Reported("https://h/a", clock.time_s - 86400 * day, changed=day % 2 == 0) for day in range(1, 40)]
    rows += [Reported("https://h/b", clock.time_s - 86400 * day, changed=False) for day in range(1, 40)]
    assert engine.observe(rows).taken == 78
    fast, slow = engine.why("https://h/a"), engine.why("https://h/b")
    assert 0.3 < fast.rate_per_s * 86400 < 1.4
    assert slow.rate_high < fast.rate_low
    assert len(fast.polls) == 10


def test_the_same_log_again_counts_once(engine: Engine, clock: FixedClock) -> None:
    (lease,) = engine.due(1, lease_s=600.0)
    assert isinstance(lease, Lease)
    rows = [Reported("https://h/b", clock.time_s - 86400 * day, changed=True) for day in range(1, 5)]
    rows += [rows[0], Reported("https://h/c", clock.time_s - 0.1, content=b"x")]
    rows += [Reported(lease.key, clock.time_s, content=b"y", lease=lease.token)]
    first = engine.observe(rows)
    assert (first.taken, first.known, first.refused) == (6, 1, ())
    polls = [item.polls for item in engine.store.items.by_id([1, 2, 3])]
    assert polls == [1, 4, 1]
    again = engine.observe(rows)
    assert (again.taken, again.known, again.refused) == (0, 7, ())
    assert [item.polls for item in engine.store.items.by_id([1, 2, 3])] == polls
    more = Reported("https://h/b", clock.time_s, changed=True)
    assert engine.observe([*rows[:4], more]).taken == 1


@pytest.mark.parametrize("token", [99, None])
def test_words_for_a_lease_that_does_not_hold_are_true(
    engine: Engine, clock: FixedClock, token: int | None
) -> None:
    (lease,) = engine.due(1, lease_s=600.0)
    assert isinstance(lease, Lease)
    engine.observe([Reported(lease.key, clock.time_s, content=b"x", lease=lease.token)])
    given = lease.token if token is None else token
    clock.time_s += 2 * 86400.0  # the answer to the first report is forgotten
    back = engine.observe([Reported(lease.key, clock.time_s + 9, content=b"y", lease=given)])
    assert back.taken == 0
    assert f"lease {given} is not valid: it was never issued, has ended" in back.refused[0]


def test_a_time_to_come_is_refused_with_row_and_item(engine: Engine) -> None:
    with pytest.raises(InputError, match="row 3: https://h/a: time is 99999999999, in the future"):
        engine.observe([Reported("https://h/a", 99999999999.0, changed=True, row=3)])
    for time_s in (-5.0, -math.inf, math.nan):
        with pytest.raises(InputError, match=r"https://h/a: time is .*: give Unix seconds"):
            engine.observe([Reported("https://h/a", time_s, changed=True)])


def test_wrong_rows_are_refused_before_any_counts(engine: Engine, clock: FixedClock) -> None:
    good = Reported("https://h/a", clock.time_s, changed=True, row=1)
    with pytest.raises(InputError, match="row 2: there is no item 'https://h/z'"):
        engine.observe([good, Reported("https://h/z", clock.time_s, changed=True, row=2)])
    with pytest.raises(InputError, match="neither changed nor content"):
        engine.observe([good, Reported("https://h/b", clock.time_s, row=2)])
    assert engine.store.items.by_id([1])[0].polls == 0


def test_an_item_never_fetched_is_new_and_not_dropped(tmp_path: Path, clock: FixedClock) -> None:
    """Also when others have a copy, and its source is closed."""
    settings = parse_settings("[[source]]\nname = 'web'\nwindows = ['03:00-04:00']", {"store.url": "memory:"})
    with make_engine(settings, tmp_path, clock=clock, seed=1) as engine:
        engine.add([f"https://h/{name}" for name in "ab"])
        for step in range(20):
            clock.time_s += 1.0
            engine.observe([Reported("https://h/a", clock.time_s, content=f"{step}".encode())])
        found = engine.why("https://h/b")
        assert found.reasons == (
            "it was never polled: new items are polled first",
            "its source is polled only in its windows; the next opens 2001-09-09 03:00:00 UTC",
        )
        assert "not planned yet" in dict(why_rows(found))["polled"]
        assert engine.status().dropped <= 1


def test_why_says_what_would_change_it(engine: Engine, clock: FixedClock) -> None:
    assert any("it was never polled" in words for words in engine.why("https://h/a").reasons)
    engine.observe([Reported("https://h/a", clock.time_s, content=b"x")])
    engine.set(["https://h/a"], ItemChange(status="paused", min_interval_s=60.0, max_interval_s=3600.0))
    words = " ".join(engine.why("https://h/a").reasons)
    for part in ("paused", "never more often than every 1 m", "at least every 1 h"):
        assert part in words
    with pytest.raises(UsageError, match="no item"):
        engine.why("https://h/z")


def test_status_counts(engine: Engine, clock: FixedClock) -> None:
    before = engine.status()
    assert (before.items, before.copies, before.due, before.freshness.value) == (3, 0, 3, 0.0)
    assert before.audited.n == 0
    engine.observe([Reported("https://h/a", clock.time_s, content=b"x")])
    engine.set(["https://h/b"], ItemChange(status="paused"))
    found = engine.status()
    assert found.by_status == {"active": 2, "paused": 1}
    assert found.copies == 1
    assert found.freshness.value == pytest.approx(0.5)
    assert found.absorbed_per_s == 1.0  # one host, a second between requests
    assert found.groups[0].group == "h"


def test_items_known_only_from_logs_have_no_copy(engine: Engine, clock: FixedClock) -> None:
    engine.observe([Reported("https://h/a", clock.time_s, content=b"x")])
    engine.observe([Reported("https://h/b", clock.time_s - age_s, changed=True) for age_s in (90.0, 30.0)])
    found = engine.status()
    assert found.copies == 1
    assert not math.isnan(found.age_s)


def test_status_of_very_many_items_looks_at_some(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.add([f"https://h/{number}" for number in range(997)])
    whole = engine.status()
    monkeypatch.setattr(restore, "SAMPLE", 200)
    monkeypatch.setattr(restore, "BLOCKS", 10)
    some = engine.status()
    assert (some.items, some.looked_at, some.due) == (1000, 200, whole.due)


def test_keys_that_no_source_could_poll_are_refused(engine: Engine) -> None:
    with pytest.raises(UsageError):
        engine.add(["ftp://h/file"])
    with pytest.raises(UsageError, match="unknown source"):
        engine.add(["https://h/x"], source="nowhere")
    assert engine.remove(["https://h/a", "https://h/zz"]) == ("https://h/zz",)


def polled_once(engine: Engine, clock: FixedClock) -> str:
    """The key of the one item that is due again at once, having been polled."""
    engine.remove(["https://h/b", "https://h/c"])
    engine.observe([Reported("https://h/a", clock.time_s, content=b"one")])
    clock.time_s += 3600
    assert [item.key for item in engine.due(9)] == ["https://h/a"]
    return "https://h/a"


def test_a_least_interval_holds_for_those_who_fetch_themselves(engine: Engine, clock: FixedClock) -> None:
    key, polled_s = polled_once(engine, clock), clock.time_s - 3600
    engine.set([key], ItemChange(min_interval_s=7 * 86400.0))
    assert engine.due(9) == []
    assert engine.due(9, lease_s=60.0) == []
    found = engine.why(key)
    assert found.next_s == polled_s + 7 * 86400.0
    assert found.marginal == float("-inf")
    assert not any("due now" in words for words in found.reasons)
    engine.poll_now([key])  # a person's request is exempt
    assert [item.key for item in engine.due(9)] == [key]


def test_of_very_many_items_the_best_of_those_due_first_are_picked(
    engine: Engine, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.add([f"https://h/{number}" for number in range(40)])
    for step in range(1, 44):
        clock.time_s += 1.0
        (item,) = engine.due(1)
        engine.observe([Reported(item.key, clock.time_s, changed=step % 3 == 0)])
    clock.time_s += 100.0
    whole = engine.due(3)
    for name, value in (("MANY", 10), ("ALL_ANYWAY", 0), ("_FIRST", 5), ("_PER_PICK", 5)):
        monkeypatch.setattr(external_scheduler, name, value)
    loaded, start = list[int](), start_scheduler

    def load(*given: Any) -> Scheduler:
        found = start(*given)
        loaded.append(found.item_rows.size)
        return found

    monkeypatch.setattr(external_scheduler, "start_scheduler", load)
    other = make_engine(engine.settings, store=engine.store, clock=clock)
    assert {item.key for item in other.due(3)} <= {item.key for item in engine.due(15, within_budget=False)}
    assert len(whole) == 3
    assert loaded == [15]
    other.due(20, within_budget=False)
    assert loaded == [15, 43]  # a hundred would be more than there are


def test_a_longest_interval_makes_due(engine: Engine, clock: FixedClock) -> None:
    key = polled_once(engine, clock)
    engine.set([key], ItemChange(min_interval_s=5e6, max_interval_s=1e7))
    clock.time_s += 1e6
    assert engine.due(9) == []
    engine.set([key], ItemChange(min_interval_s=0.0, max_interval_s=10.0))
    assert [item.key for item in engine.due(9)] == [key]
