"""The mean cost of a poll of each source, and the number of polls of each source, host and view.

The mean cost is in requests, bytes and seconds; old polls count less and less. A request that polls many
items counts once, so that the mean poll needs less than one request.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, replace
from typing import TypeAlias

REMEMBERED = 1000.0
"""After this many further polls, a poll counts 1/e (about a third) as much as a new one."""

_MOST = 10_000  # hosts or views that are counted apart


class PollCosts:
    """The costs of polls by source: decaying sums of polls, requests, bytes and seconds, in this order.

    >>> costs = PollCosts()
    >>> costs.mean("web")
    (1.0, 0.0, 0.0)
    >>> costs.add("web", 1, 500, 0.2)
    >>> costs.add("web", 0, 500, 0.2)
    >>> costs.mean("web")  # doctest: +ELLIPSIS
    (0.49..., 500.0, 0.2)
    """

    def __init__(self) -> None:
        self._sums: dict[str, list[float]] = {}

    def add(self, source: str, requests: float, received: float, seconds: float) -> None:
        sums, keep = self._sums.get(source, [0.0] * 4), 1.0 - 1.0 / REMEMBERED
        poll = (1.0, requests, received, seconds)
        self._sums[source] = [old * keep + new for old, new in zip(sums, poll, strict=True)]

    def mean(self, source: str) -> tuple[float, float, float]:
        """Return the means of a poll as a tuple (requests, bytes, seconds); (1, 0, 0) before any poll."""
        polls, requests, received, seconds = self._sums.get(source, (1.0, 1.0, 0.0, 0.0))
        return requests / polls, received / polls, seconds / polls

    def pack(self) -> bytes:
        return json.dumps(self._sums).encode()

    @classmethod
    def unpack(cls, packed: bytes | None) -> PollCosts:
        poll_costs = cls()
        if packed:
            poll_costs._sums = {
                name: [float(value) for value in sums] for name, sums in json.loads(packed).items()
            }
        return poll_costs


@dataclass(slots=True)
class Tally:
    """What was counted of one source, host or view since the engine started."""

    polls: int = 0
    changes: int = 0
    failures: int = 0
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        self.polls += other.polls
        self.changes += other.changes
        self.failures += other.failures
        self.seconds += other.seconds


OTHERS = "other"
"""The name under which the hosts or views that are not named are counted together."""

TalliesByName: TypeAlias = dict[tuple[str, str], Tally]


class PollTallies:
    """Counts polls by source, by host and by view. The keys of ``hosts`` and ``views`` are tuples (source,
    name). So that many hosts do not fill the memory, at most ``_MOST`` are kept apart.

    >>> tallies = PollTallies()
    >>> tallies.count("web", "a.example", "", Tally(1, 0, 1, 0.5))
    >>> tallies.hosts
    {('web', 'a.example'): Tally(polls=1, changes=0, failures=1, seconds=0.5)}
    """

    def __init__(self) -> None:
        self.sources: TalliesByName = {}
        self.hosts: TalliesByName = {}
        self.views: TalliesByName = {}

    def count(self, source: str, host: str, view: str, poll: Tally) -> None:
        """Count a poll of ``source`` at ``host``. If the item is a view, ``view`` is its key, else empty."""
        _count(self.sources, (source, source), poll)
        _count(self.hosts, (source, host), poll)
        if view:
            _count(self.views, (source, view), poll)

    def add(self, other: PollTallies) -> None:
        """Add what another worker counted."""
        for own, more in zip(self._parts(), other._parts(), strict=True):
            for key, tally in more.items():
                _count(own, key, tally)

    def pack(self, most: int = 100) -> bytes:
        """Return the tallies of the ``most`` busiest sources, hosts and views as bytes to be stored. The
        others are counted together as ``OTHERS``."""
        parts = [_busiest(part, most) for part in self._parts()]
        plain = [[[*key, *astuple(tally)] for key, tally in part.items()] for part in parts]
        return json.dumps(plain).encode()

    @classmethod
    def unpack(cls, packed: bytes | None) -> PollTallies:
        found = cls()
        if packed:
            for part, rows in zip(found._parts(), json.loads(packed), strict=True):
                part.update({(source, name): Tally(*counts) for source, name, *counts in rows})
        return found

    def _parts(self) -> tuple[TalliesByName, TalliesByName, TalliesByName]:
        return self.sources, self.hosts, self.views


def _count(part: TalliesByName, key: tuple[str, str], poll: Tally) -> None:
    if key not in part and len(part) >= _MOST:
        key = ("", OTHERS)
    part.setdefault(key, Tally()).add(poll)


def _busiest(part: TalliesByName, most: int) -> TalliesByName:
    """Return the ``most`` names with the most polls, and the sum of all others as ``OTHERS``."""
    order = sorted(part, key=lambda key: (key[1] == OTHERS, -part[key].polls, key))
    found = {key: replace(part[key]) for key in order[:most]}
    for key in order[most:]:
        found.setdefault(("", OTHERS), Tally()).add(part[key])
    return found
