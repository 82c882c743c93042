"""Parties share the parser processes: one whose inputs take long does not starve the others."""

from __future__ import annotations

from afresh.sources.parsing.fair_turns import FairTurns, Turn


def is_granted(turn: Turn) -> bool:
    return turn.granted.done()


def known(turns: FairTurns, party: str, seconds: float) -> None:
    turns.end(turns.request(party), seconds)


def test_slow_and_unknown_parties_leave_one_process_to_quick_ones() -> None:
    turns = FairTurns(2)
    known(turns, "quick", 0.1)
    known(turns, "slow", 8.0)
    slow = [turns.request("slow") for _ in range(3)]
    unknown = turns.request("new")
    assert [is_granted(turn) for turn in [*slow, unknown]] == [True, False, False, False]
    assert is_granted(turns.request("quick"))


def test_quick_parties_use_all_processes() -> None:
    turns = FairTurns(2)
    known(turns, "quick", 0.1)
    assert [is_granted(turns.request("quick")) for _ in range(3)] == [True, True, False]


def test_the_party_that_used_least_is_next_and_nobody_saves_time_up() -> None:
    turns = FairTurns(1)
    known(turns, "idle", 0.5)
    for _ in range(100):
        known(turns, "busy", 3.0)
    first = turns.request("busy")
    waiting = {
        "busy": turns.request("busy"),
        "idle": turns.request("idle"),
        "idle again": turns.request("idle"),
    }
    turns.end(first, 3.0)
    assert is_granted(waiting["idle"])
    turns.end(waiting["idle"], 9.0)
    # It was idle for 300 s, but that does not let it go first again.
    assert is_granted(waiting["busy"])
    assert not is_granted(waiting["idle again"])


def test_a_party_that_becomes_quick_gets_its_share_again() -> None:
    turns = FairTurns(2)
    known(turns, "host", 8.0)
    for _ in range(12):
        known(turns, "host", 0.1)
    assert [is_granted(turns.request("host")) for _ in range(2)] == [True, True]


def test_a_turn_that_is_given_up_blocks_nobody() -> None:
    turns = FairTurns(1)
    running, waiting, last = (turns.request(party) for party in "abc")
    turns.end(waiting)
    turns.end(running)
    assert is_granted(last)
    assert not is_granted(waiting)
    turns.end(last, 1.0)
    turns.end(last, 1.0)  # once more changes nothing
    assert is_granted(turns.request("d"))
    assert not is_granted(turns.request("e"))


def test_only_so_many_parties_are_remembered() -> None:
    turns = FairTurns(2)
    known(turns, "first", 0.1)
    for number in range(10_000):
        known(turns, f"host{number}", 0.1)
    assert is_granted(turns.request("host9"))
    assert is_granted(turns.request("first"))  # not known any more, so the last slow place
    assert not is_granted(turns.request("first"))
