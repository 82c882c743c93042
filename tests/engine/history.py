"""Judges what a fleet did from a recorded history: the site's requests, the calls of hooks, what a reader of
the feed saw meanwhile, and the store's end.

Nothing here runs a process, so that the judge itself can be tested with histories that are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Told:
    """One call of a hook: the item, the number of its version, and the state of the page that it contains."""

    item: str
    number: int
    page_version: int


@dataclass(frozen=True, slots=True, order=True)
class FedChange:
    """One change of the feed: its number, the item and the version."""

    number: int
    item: str
    version: int


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """One item: how often the site served it, how many polls the store counts, how many outcomes the engines
    refused and said so, how many polls were under way when their engine was killed, and its last version."""

    item: str
    served: int
    polls: int
    refused: int = 0
    cut_off: int = 0
    last_number: int = 0


def judge_outcomes(histories: Iterable[ItemHistory]) -> list[str]:
    """Return a problem for each item with lost or doubled outcomes.

    >>> judge_outcomes([ItemHistory("a", served=5, polls=3, refused=1, cut_off=1)])
    []
    >>> judge_outcomes([ItemHistory("a", served=5, polls=3), ItemHistory("b", served=5, polls=6)])
    ['a: 2 outcomes are lost', 'b: 1 outcome is doubled']
    """
    problems = []
    for one in histories:
        missing = one.served - one.refused - one.polls
        if missing > one.cut_off:
            problems.append(f"{one.item}: {_outcomes(missing - one.cut_off)} lost")
        elif missing < 0:
            problems.append(f"{one.item}: {_outcomes(-missing)} doubled")
    return problems


def _outcomes(count: int) -> str:
    return f"{count} outcome is" if count == 1 else f"{count} outcomes are"


def judge_order(told: Iterable[Told], last_numbers: Mapping[str, int]) -> list[str]:
    """Return a problem for each item whose hook was called out of order, not for all versions, or with an
    older state of the page after a newer one. A call may be repeated, before the next one is made.

    >>> judge_order([Told("a", 1, 0), Told("a", 1, 0), Told("a", 2, 4)], {"a": 2})
    []
    >>> judge_order([Told("a", 2, 4), Told("a", 1, 0)], {"a": 2})
    ['a: versions [2, 1] were told, but the store has 1 to 2', 'a: the page went back: [4, 0]']
    """
    calls: dict[str, list[Told]] = {item: [] for item in last_numbers}
    for call in told:
        line = calls.setdefault(call.item, [])
        if not line or line[-1] != call:
            line.append(call)
    problems = []
    for item, line in calls.items():
        numbers, pages = [call.number for call in line], [call.page_version for call in line]
        if numbers != list(range(1, last_numbers.get(item, 0) + 1)):
            problems.append(
                f"{item}: versions {numbers} were told, but the store has 1 to {last_numbers.get(item, 0)}"
            )
        if any(after <= before for before, after in pairwise(pages)):
            problems.append(f"{item}: the page went back: {pages}")
    return problems


def judge_feed(
    followed: Sequence[FedChange], feed: Sequence[FedChange], last_numbers: Mapping[str, int]
) -> list[str]:
    """Return a problem for each promise of the feed that was broken. ``feed`` is the whole feed at the end,
    ``followed`` what a reader got from it by cursors while the engines wrote it: the same, each change once
    and in order. Changes are numbered without gaps, and an item's versions are in order, each once.

    >>> feed = [FedChange(1, "a", 1), FedChange(2, "b", 1), FedChange(3, "a", 2)]
    >>> judge_feed(feed, feed, {"a": 2, "b": 1})
    []
    >>> judge_feed([feed[0], feed[2]], feed, {"a": 2, "b": 1})
    ['the reader of the feed missed [2]']
    >>> judge_feed([feed[0], feed[0], feed[2], feed[1]], feed, {"a": 2, "b": 1})
    ['the reader of the feed got changes twice or out of order: [1, 1, 3, 2]']
    >>> judge_feed(feed[:2], feed[:2], {"a": 2, "b": 1})
    ['a: the feed has versions [1], the store has 1 to 2']
    """
    numbers, seen = [change.number for change in feed], [change.number for change in followed]
    problems = []
    if numbers != list(range(1, len(numbers) + 1)):
        problems.append(f"the feed is numbered {numbers}")
    if missed := sorted(set(numbers) - set(seen)):
        problems.append(f"the reader of the feed missed {missed}")
    if any(after <= before for before, after in pairwise(seen)):
        problems.append(f"the reader of the feed got changes twice or out of order: {seen}")
    if not set(followed) <= set(feed):
        problems.append(f"the reader of the feed got others: {sorted(set(followed) - set(feed))}")
    versions: dict[str, list[int]] = {item: [] for item in last_numbers}
    for change in feed:
        versions.setdefault(change.item, []).append(change.version)
    for item, found in versions.items():
        if found != list(range(1, last_numbers.get(item, 0) + 1)):
            problems.append(
                f"{item}: the feed has versions {found}, the store has 1 to {last_numbers.get(item, 0)}"
            )
    return problems


def repeated_calls(told: Sequence[Told]) -> int:
    """Return how many calls repeat an earlier one: a hook is told at least once, so this is allowed."""
    return len(told) - len(set(told))


def judge_budget(times_s: Sequence[float], rate: float, burst: float, jitter_s: float) -> list[str]:
    """Return a problem if any window of T seconds has more than rate·(T + jitter) + burst requests.

    >>> judge_budget([0.0, 0.5, 1.0, 1.5], rate=2.0, burst=1.0, jitter_s=0.0)
    []
    >>> judge_budget([0.0, 0.5, 0.5, 0.5, 1.0], rate=2.0, burst=1.0, jitter_s=0.0)
    ['2 requests more than the budget allows']
    """
    lowest = worst = 0.0
    for count, time_s in enumerate(sorted(times_s)):
        level = count - rate * time_s
        lowest = level if count == 0 else min(lowest, level)
        worst = max(worst, level - lowest)
    excess = worst + 1.0 - burst - rate * jitter_s
    return [f"{excess:.0f} requests more than the budget allows"] if excess > 1e-6 else []
