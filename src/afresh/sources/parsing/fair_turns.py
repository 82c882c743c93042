"""Shares the turns of a few parser processes between parties, mostly hosts, so that none starves the others.

Two rules. A party whose inputs take long, or that is not known yet, may not take the last free process: it is
kept for parties whose inputs take less than a second on average. And of the parties that wait, the one that
has used the least time is next; a party that did not wait before is treated as if it had used as much as the
party that was served last (start-time fair queueing: Goyal, Vin and Cheng 1996), so that no time is saved up.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

_QUICK_S = 1.0
_WEIGHT = 1 / 4  # of the newest input in the average
_PARTIES_KEPT = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """The right of ``party`` to use one process; ``granted`` is done as soon as it may."""

    party: str
    granted: Future[None] = field(default_factory=Future)


class FairTurns:
    """Grants at most ``count`` turns at the same time. Any thread may call it.

    >>> turns = FairTurns(2)
    >>> heavy, second, quick = (turns.request(party) for party in ("heavy", "heavy", "quick"))
    >>> [turn.granted.done() for turn in (heavy, second, quick)]
    [True, False, False]
    >>> turns.end(heavy, 10.0)                     # it has used the most, so the other one is next
    >>> second.granted.done(), quick.granted.done()
    (False, True)
    """

    def __init__(self, count: int) -> None:
        self._count, self._for_slow = count, max(count - 1, 1)
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Turn]] = {}
        self._running: dict[Turn, bool] = {}  # whether it counts as slow
        self._mean_s: dict[str, float] = {}
        self._used_s: dict[str, float] = {}
        self._served_s = 0.0  # what the party that was served last had used by then

    def request(self, party: str) -> Turn:
        turn = Turn(party)
        with self._lock:
            self._waiting.setdefault(party, deque()).append(turn)
            granted = self._grant()
        _tell(granted)
        return turn

    def end(self, turn: Turn, seconds: float | None = None) -> None:
        """End a turn that took ``seconds``, or one that was not used (None), also if it was not granted."""
        with self._lock:
            if self._running.pop(turn, None) is None:
                self._withdraw(turn)
            elif seconds is not None:
                self._charge(turn.party, seconds)
            granted = self._grant()
        _tell(granted)

    def _withdraw(self, turn: Turn) -> None:
        line = self._waiting.get(turn.party)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._waiting[turn.party]

    def _charge(self, party: str, seconds: float) -> None:
        mean_s = self._mean_s.pop(party, seconds)
        used_s = self._used_s.pop(party, 0.0)
        # Put at the end, so that the parties that come first are those not heard of for the longest time.
        self._mean_s[party] = mean_s + _WEIGHT * (seconds - mean_s)
        self._used_s[party] = max(used_s, self._served_s) + seconds
        if len(self._mean_s) > _PARTIES_KEPT:
            for table in (self._mean_s, self._used_s):
                del table[next(iter(table))]

    def _grant(self) -> list[Turn]:
        granted = []
        while self._waiting and len(self._running) < self._count:
            has_room = sum(self._running.values()) < self._for_slow
            allowed = [party for party in self._waiting if has_room or self._is_quick(party)]
            if not allowed:
                break
            party = min(allowed, key=lambda each: max(self._used_s.get(each, 0.0), self._served_s))
            self._served_s = max(self._used_s.get(party, 0.0), self._served_s)
            turn = self._waiting[party].popleft()
            if not self._waiting[party]:
                del self._waiting[party]
            self._running[turn] = not self._is_quick(party)
            granted.append(turn)
        return granted

    def _is_quick(self, party: str) -> bool:
        return self._mean_s.get(party, _QUICK_S) < _QUICK_S


def _tell(granted: list[Turn]) -> None:
    """Without the lock, because whoever waits may go on at once."""
    for turn in granted:
        turn.granted.set_result(None)
