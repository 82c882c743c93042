"""The budget's promise: at most rate·T + 1 requests in any window of length T, whatever is asked.

A window that holds n requests is at least as long as the time from its first to its last, so the promise is
exactly that consecutive starts lie at least 1/rate apart. Time that passes unused is gone, not hoarded.

Bytes, seconds and money are known only after a request. Each is a debt paid off at its rate, and no
request starts before all debts are paid.

The promise holds across restarts: before a request starts, the store has been told (``reserved_s``) that one
may start until then; whoever comes after a crash waits as if one had started at the last such moment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from afresh.values.outcome import Spent

RESERVE_S = 1.0
"""How far ahead the store is told of requests: one small write a second at most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be spent per second; infinity where nothing limits it."""

    requests: float = math.inf
    bytes: float = math.inf
    seconds: float = math.inf
    money: float = math.inf

    @property
    def spacing_s(self) -> float:
        """The least time between two starts."""
        return 1.0 / self.requests


@dataclass(frozen=True, slots=True)
class Pacer:
    """When the next request may start: a value; time is an argument and may be of any clock.

    >>> pacer = Pacer(Limits(requests=2.0))
    >>> pacer = pacer.started(100.0)
    >>> pacer.ready_s(100.1)
    100.5
    >>> pacer.ready_s(500.0)                      # idle time is not hoarded
    500.0
    >>> Pacer(Limits(bytes=1000.0)).started(0.0).paid(0.2, Spent(bytes=5000)).ready_s(1.0)
    5.2
    """

    limits: Limits
    started_s: float = -math.inf
    debt_s: float = -math.inf

    def ready_s(self, now_s: float) -> float:
        """The earliest start that keeps the promise, ``now_s`` if at once."""
        ready = max(now_s, self.started_s + self.limits.spacing_s, self.debt_s)
        # started + spacing rounds, and the difference of the rounded times must not fall short.
        return ready if ready - self.started_s >= self.limits.spacing_s else math.nextafter(ready, math.inf)

    def started(self, now_s: float) -> Pacer:
        """A request starts."""
        return replace(self, started_s=max(now_s, self.started_s))

    def paid(self, now_s: float, spent: Spent) -> Pacer:
        """What a request cost beside itself: the longest of the debts counts, since all are paid at once."""
        limits = self.limits
        owed_s = max(spent.bytes / limits.bytes, spent.seconds / limits.seconds, spent.money / limits.money)
        return replace(self, debt_s=max(self.debt_s, now_s) + owed_s) if owed_s > 0 else self

    def limited(self, limits: Limits) -> Pacer:
        """The same past under other limits."""
        return replace(self, limits=limits)


@dataclass(frozen=True, slots=True)
class Reserve:
    """What the store knows of the budget, in Unix seconds.

    ``reserved_s``: no request started later; ``debt_s``: when the debts will be paid; ``groups``: when a
    request to each group with a cap of its own started last.
    """

    reserved_s: float = -math.inf
    debt_s: float = -math.inf
    groups: Mapping[str, float] = field(default_factory=dict)

    def pack(self) -> bytes:
        """As the store keeps it."""
        return json.dumps([_plain(self.reserved_s), _plain(self.debt_s), dict(self.groups)]).encode()

    @classmethod
    def unpack(cls, packed: bytes | None) -> Reserve:
        """What was kept; nothing where nothing was.

        >>> Reserve.unpack(Reserve(5.0).pack()) == Reserve(5.0), Reserve.unpack(None)
        (True, Reserve(reserved_s=-inf, debt_s=-inf, groups={}))
        """
        if packed is None:
            return cls()
        reserved, debt, *more = json.loads(packed)
        reserved_s, debt_s = (-math.inf if value is None else float(value) for value in (reserved, debt))
        return cls(reserved_s, debt_s, more[0] if more else {})


def resumed(limits: Limits, reserve: Reserve, now_s: float, elapsed_s: float) -> Pacer:
    """The pacer of a new process: ``now_s`` of the day is ``elapsed_s`` of its own clock.

    The last start was at the reserve or before, and before now. A debt in the far future (the clock was
    set back) counts as no more than the day it could have grown in.

    >>> resumed(Limits(requests=0.1), Reserve(95.0), 100.0, 3.0).ready_s(3.0)
    8.0
    """
    started_s = min(reserve.reserved_s, now_s) - now_s + elapsed_s
    debt_s = min(reserve.debt_s - now_s, 86400.0) + elapsed_s
    return Pacer(limits, started_s, debt_s)


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
