"""The mean cost of a poll of each source in requests, bytes and seconds; old polls count less and less.

A request that polls many items counts once, so that the mean poll needs less than one request.
"""

from __future__ import annotations

import json

REMEMBERED = 1000.0
"""After this many further polls, a poll counts 1/e (about a third) as much as a new one."""


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
