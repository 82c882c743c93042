"""Polls are counted by source, host and view, and the number of names is bounded."""

from __future__ import annotations

from afresh.engine.scheduler.poll_costs import OTHERS, PollTallies, Tally


def test_the_busiest_hosts_are_named_and_the_others_counted_together() -> None:
    tallies = PollTallies()
    for host in range(150):
        for _ in range(host + 1):
            tallies.count("web", f"h{host}", "", Tally(1, 1, 0, 0.5))
    kept = PollTallies.unpack(tallies.pack())
    assert len(kept.hosts) == 101
    assert kept.hosts["web", "h149"] == Tally(150, 150, 0, 75.0)
    assert kept.hosts["", OTHERS].polls == sum(range(1, 51))
    assert kept.sources["web", "web"].polls == sum(range(1, 151))
    # What is packed again and added keeps its sums, and nothing was changed by packing.
    assert PollTallies.unpack(kept.pack()).hosts == kept.hosts
    assert sum(tally.polls for tally in tallies.hosts.values()) == sum(range(1, 151))


def test_the_workers_of_a_fleet_add_up() -> None:
    one, two = PollTallies(), PollTallies()
    one.count("house", "house", "a", Tally(1, 1, 0, 2.0))
    two.count("house", "house", "a", Tally(1, 0, 1, 3.0))
    two.count("house", "house", "b", Tally(1, 1, 0, 1.0))
    one.add(two)
    assert one.views == {("house", "a"): Tally(2, 1, 1, 5.0), ("house", "b"): Tally(1, 1, 0, 1.0)}
