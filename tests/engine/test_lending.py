"""Leases for programs that fetch items themselves: hosts, budget, answers that are given again, failures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.engine.test_external_polls import FixedClock
from tests.engine.virtual_site import VirtualSite
from tests.virtual_time import pass_time

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_scheduler import ExternalScheduler
from afresh.engine.lending import LeaseKey
from afresh.engine.settings.parsing import parse_settings
from afresh.values.clock import SystemClock
from afresh.values.errors import UsageError
from afresh.values.lease import Lease
from afresh.values.reported import ReportAnswer, Reported

SETTINGS = """
[budget]
requests = "1/s"
burst = 4
[[source]]
name = "web"
first_rest = "10s"
missing_polls = 2
missing_time = "0s"
"""


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def engine(tmp_path: Path, clock: FixedClock) -> Iterator[Engine]:
    with engine_in(tmp_path, clock) as made:
        made.add([f"https://h/{name}" for name in "abcd"])
        made.add(["https://other/a"], weight=2.5)
        yield made


def engine_in(folder: Path, clock: FixedClock, more: str = "") -> Engine:
    """Another engine on the same folder is another process for the store."""
    return make_engine(parse_settings(SETTINGS + more), folder, clock=clock, seed=1)


def report(engine: Engine, reported: Reported) -> ReportAnswer:
    """The answer to one reported poll."""
    (answer,) = engine.lending.record([reported]).answers
    return answer


def test_requests_to_one_host_are_a_delay_apart(engine: Engine, clock: FixedClock) -> None:
    lent = engine.lending.lend(9, 600.0)
    starts = {lease.key: lease.not_before_s - clock.time_s for lease in lent.leases}
    assert starts == {"https://h/a": 0.0, "https://h/b": 1.0, "https://h/c": 2.0, "https://h/d": 3.0}
    assert lent.retry_after_s == 1.0


def test_a_host_that_is_busy_leaves_the_budget_to_others(tmp_path: Path, clock: FixedClock) -> None:
    """With a burst of 1, only what may be requested now is lent."""
    with engine_in(tmp_path, clock, "delay = '30s'\n") as engine:
        engine.add([*(f"https://h/{name}" for name in "abc"), "https://other/a"])
        clock.time_s += 100.0
        assert [lease.key for lease in engine.lending.lend(9, 600.0).leases] == [
            "https://h/a",
            "https://other/a",
        ]
        clock.time_s += 10.0
        lent = engine.lending.lend(9, 600.0)
        assert (lent.leases, lent.retry_after_s) == ((), 20.0)
        with engine_in(tmp_path, clock, "delay = '30s'\n") as other:
            assert other.lending.lend(9, 600.0).leases == ()
            assert other.due(9) == []
            clock.time_s += 20.0
            assert len(other.lending.lend(9, 600.0).leases) == 1
        assert engine.lending.lend(9, 600.0).leases == ()


def test_a_lease_reserves_a_request_even_if_it_never_comes_back(engine: Engine, clock: FixedClock) -> None:
    assert len(engine.lending.lend(3, 10.0).leases) == 3
    assert len(engine.lending.lend(3, 10.0).leases) == 1
    assert engine.lending.lend(3, 10.0).leases == ()
    clock.time_s += 1.0
    assert len(engine.lending.lend(3, 10.0).leases) == 1


def test_requests_of_the_next_time_are_lent_in_advance(engine: Engine, clock: FixedClock) -> None:
    """At 1/s with a burst of 4: four now, and two more within two seconds, one second apart."""
    engine.add([f"https://{name}/" for name in "ijkl"])
    assert len(engine.lending.lend(4, 10.0).leases) == 4
    lent = engine.lending.lend(9, 10.0, ahead_s=2.0)
    assert [lease.not_before_s - clock.time_s for lease in lent.leases] == [1.0, 2.0]
    clock.time_s += 2.0
    assert engine.lending.lend(9, 10.0).leases == ()  # these seconds are spent
    clock.time_s += 1.0
    assert len(engine.lending.lend(9, 10.0).leases) == 1
    with pytest.raises(UsageError, match="at most the lease's time"):
        engine.lending.lend(9, 10.0, ahead_s=11.0)


def test_two_programs_that_lease_at_once_keep_the_budget_together(
    engine: Engine, tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one leases while the first one picks its items."""
    engine.add([f"https://{name}/" for name in "ijklmnop"])
    pick, given = ExternalScheduler.pick, list[Lease]()

    def pick_late(self: ExternalScheduler, *args: Any) -> list[int]:
        monkeypatch.setattr(ExternalScheduler, "pick", pick)
        with engine_in(tmp_path, clock) as other:
            given.extend(other.lending.lend(9, 60.0).leases)
        return pick(self, *args)

    monkeypatch.setattr(ExternalScheduler, "pick", pick_late)
    given += engine.lending.lend(9, 60.0).leases
    assert len(given) == 4


def test_a_second_report_gets_the_first_answer_for_a_day(
    engine: Engine, clock: FixedClock, tmp_path: Path
) -> None:
    (lease,) = engine.lending.lend(1, 60.0).leases
    first = report(engine, Reported(lease.key, clock.time_s, content=b"x", lease=lease.token))
    assert (first.result, first.changed, first.status) == ("recorded", False, "active")
    clock.time_s += 3600.0
    with engine_in(tmp_path, clock) as other:
        result = other.lending.record([Reported(lease.key, clock.time_s, changed=True, lease=lease.token)])
    assert (result.answers, result.taken, result.known) == ((first,), 0, 1)
    clock.time_s += 86400.0
    again = report(engine, Reported(lease.key, clock.time_s, changed=True, lease=lease.token))
    assert again.result == "conflict"
    item = engine.store.items.get(lease.key)
    assert item is not None
    assert (item.polls, item.changes) == (1, 0)


def test_two_reports_of_one_poll_in_one_call_count_once(engine: Engine, clock: FixedClock) -> None:
    (lease,) = engine.lending.lend(1, 60.0).leases
    row = Reported(lease.key, clock.time_s, changed=True, lease=lease.token)
    result = engine.lending.record([row, row])
    assert (result.taken, result.known) == (1, 1)
    assert result.answers[0] == result.answers[1]


def test_a_late_report_counts_unless_the_item_was_lent_again(engine: Engine, clock: FixedClock) -> None:
    late, lost = engine.lending.lend(2, 10.0).leases
    clock.time_s += 11.0
    assert (
        report(engine, Reported(late.key, clock.time_s, changed=True, lease=late.token)).result == "recorded"
    )
    again = {lease.key: lease for lease in engine.lending.lend(4, 10.0).leases}
    rows = [Reported(lost.key, clock.time_s, changed=True, lease=lost.token)]
    rows += [Reported(lost.key, clock.time_s, changed=False, lease=again[lost.key].token)]
    found = engine.lending.record(rows)
    assert [answer.result for answer in found.answers] == ["conflict", "recorded"]
    assert "went to another worker" in found.answers[0].problem


def test_leases_are_extended_and_released(engine: Engine, clock: FixedClock) -> None:
    kept, given_back = engine.lending.lend(2, 10.0).leases
    assert engine.lending.extend([LeaseKey(kept.key, kept.token), LeaseKey("https://h/z", 9)], 100.0) == (
        "https://h/z",
    )
    assert engine.lending.release([LeaseKey(given_back.key, given_back.token)]) == ()
    assert engine.lending.release([LeaseKey(given_back.key, given_back.token)]) == (given_back.key,)
    clock.time_s += 50.0
    keys = [lease.key for lease in engine.lending.lend(9, 10.0).leases]
    assert given_back.key in keys
    assert kept.key not in keys
    with pytest.raises(UsageError, match="at most 7 days"):
        engine.lending.extend([LeaseKey(kept.key, kept.token)], 1e9)


def test_what_a_crawler_reports_means_what_it_means_in_a_run(engine: Engine, clock: FixedClock) -> None:
    leases = engine.lending.lend(4, 600.0).leases
    found = [
        report(engine, Reported(leases[0].key, clock.time_s, status=404, lease=leases[0].token)),
        report(engine, Reported(leases[1].key, clock.time_s, failure="body is cut", lease=leases[1].token)),
        report(engine, Reported(leases[2].key, clock.time_s, status=403, lease=leases[2].token)),
    ]
    assert [answer.changed for answer in found] == [None] * 3
    items = [engine.store.items.get(lease.key) for lease in leases[:3]]
    assert [item and (item.failures, item.problem, item.due_s - clock.time_s) for item in items] == [
        (1, "404 Not Found", 60.0),
        (1, "body is cut", 60.0),
        (1, "403 Forbidden", 3600.0),
    ]
    clock.time_s += 100.0
    (again,) = engine.lending.lend(1, 60.0).leases
    gone = report(engine, Reported(again.key, clock.time_s, status=404, lease=again.token))
    assert (gone.status, gone.next_poll_s) == ("gone", None)


def test_a_host_that_asks_for_rest_gets_it(engine: Engine, clock: FixedClock) -> None:
    (lease,) = engine.lending.lend(1, 60.0).leases
    busy = Reported(lease.key, clock.time_s, status=429, retry_after_s=120.0, lease=lease.token)
    assert report(engine, busy).next_poll_s == clock.time_s + 120.0
    assert [(group.group, group.why) for group in engine.status().groups if group.why] == [
        ("h", "429 Too Many Requests")
    ]
    clock.time_s += 60.0
    assert [each.group for each in engine.lending.lend(9, 60.0).leases] == ["other"]
    clock.time_s += 61.0
    assert {each.group for each in engine.lending.lend(9, 60.0).leases} == {"h"}


def test_bytes_and_seconds_are_counted_and_paid_off(tmp_path: Path, clock: FixedClock) -> None:
    settings = parse_settings(
        "[budget]\nrequests = '1/s'\nbytes = '1kB/s'\n[[source]]\nname = 'web'\ndelay = '0s'"
        "\nmin_interval = 0"
    )
    with make_engine(settings, tmp_path, clock=clock, seed=1) as engine:
        engine.add(["https://h/a", "https://h/b"])
        (lease,) = engine.lending.lend(1, 60.0).leases
        row = Reported(lease.key, clock.time_s, changed=False, lease=lease.token, bytes=5000, seconds=0.5)
        assert report(engine, row).result == "recorded"
        spent = engine.store.ledger.total(0.0, clock.time_s + 60.0)
        assert (spent.requests, spent.bytes, spent.seconds) == (1, 5000, 0.5)
        clock.time_s += 4.0
        assert engine.lending.lend(1, 60.0).leases == ()
        clock.time_s += 1.0
        assert len(engine.lending.lend(1, 60.0).leases) == 1


def test_count_and_time_of_a_change_are_kept(engine: Engine, clock: FixedClock) -> None:
    for content in (b"one", b"two"):
        clock.time_s += 100.0
        row = Reported("https://h/a", clock.time_s, content=content, count=3, modified_s=clock.time_s - 7.0)
        assert report(engine, row).result == "recorded"
    (batch,) = engine.store.observations.read([1])
    assert batch.count.tolist() == [3, 3]
    assert (batch.time_s - batch.modified_s).tolist() == [7.0, 7.0]


def test_a_304_keeps_the_validators(engine: Engine, clock: FixedClock) -> None:
    (lease,) = engine.lending.lend(1, 60.0).leases
    validators = {"etag": '"1"', "last-modified": "Thu, 01 Jan 1970 00:01:00 GMT"}
    row = Reported(lease.key, clock.time_s, content=b"x", lease=lease.token, validators=validators)
    assert report(engine, row).result == "recorded"
    clock.time_s += 1000.0
    (again,) = engine.store.leases.take([1], clock.time_s, 60.0)
    assert {name: again.validators[name] for name in validators} == validators
    found = report(engine, Reported(lease.key, clock.time_s, status=304, lease=again.token))
    assert (found.result, found.changed) == ("recorded", False)
    (kept,) = engine.store.leases.take([1], clock.time_s, 1.0)
    assert {name: kept.validators[name] for name in validators} == validators


def test_wrong_rows_fail_alone(engine: Engine, clock: FixedClock) -> None:
    rows = [
        Reported("https://h/z", clock.time_s, changed=True),
        Reported("https://h/a", clock.time_s, changed=True),
        Reported("https://h/b", clock.time_s),
        Reported("https://h/c", clock.time_s, changed=True, count=-1),
    ]
    found = engine.lending.record(rows, skip_invalid=True)
    assert [answer.result for answer in found.answers] == ["invalid", "recorded", "invalid", "invalid"]
    assert found.taken == 1


def test_threads_share_the_items(tmp_path: Path) -> None:
    settings = parse_settings(
        "[budget]\nrequests = '1000/s'\n[[source]]\nname = 'web'\ndelay = '0s'\nmin_interval = 0"
    )
    with make_engine(settings, tmp_path, seed=1) as engine:
        engine.add([f"https://h/{number}" for number in range(60)])
        keys: list[str] = []

        def work() -> None:
            for lease in engine.lending.lend(15, 60.0).leases:
                keys.append(lease.key)
                engine.lending.record(
                    [Reported(lease.key, SystemClock().now_s(), changed=True, lease=lease.token)]
                )

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(keys) == sorted(f"https://h/{number}" for number in range(60))
        assert {item.polls for item in engine.store.items.by_id(range(1, 61))} == {1}


class _LendingSite(VirtualSite):
    """A site that another program fetches from, too: two items, leased one after the other beside a run."""

    lent: tuple[Lease, ...] = ()
    _program: asyncio.Task[None] | None = None
    asked_engine: Engine

    async def serve(self, path: str, headers: Mapping[str, str]) -> bytes:
        """With the first request of the run, the other program begins."""
        if self._program is None:
            self._program = asyncio.create_task(self._fetch_two())
        return await super().serve(path, headers)

    async def _fetch_two(self) -> None:
        while len(self.lent) < 2:
            for lease in self.asked_engine.lending.lend(1, 30.0).leases:
                await pass_time(max(lease.not_before_s - self.time.now_s(), 0.0))
                content = await self.serve(urlsplit(lease.key).path, {})
                row = Reported(lease.key, self.time.now_s(), content=content, lease=lease.token)
                assert report(self.asked_engine, row).result == "recorded"
                self.lent += (lease,)
            await pass_time(0.02)


def test_beside_a_run_budget_and_delays_hold(tmp_path: Path) -> None:
    """The run keeps clear of lent requests, does not poll what is lent, and both learn."""
    source = 'delay = "1s"\nrespect_robots = false'
    with _LendingSite([0.2] * 30) as site, site.engine(tmp_path, budget="20/s", source=source) as engine:
        engine.add(site.urls())
        site.asked_engine = engine
        polled = engine.run(for_s=30.0)
        run = engine.status().run
        assert run is not None
        assert run.unspent["lent"] == len(site.lent) == 2
        for lease in site.lent:
            path = urlsplit(lease.key).path
            others = [time_s - lease.not_before_s for time_s, each in site.requests if each != path]
            assert [time_s for time_s in others if abs(time_s) < 0.99] == []
        assert polled.polls == len(site.requests)
        assert polled.requests >= len(site.requests) - 2
        items = engine.store.items.by_id(range(1, 31))
        assert sum(item.polls for item in items) == len(site.requests)
