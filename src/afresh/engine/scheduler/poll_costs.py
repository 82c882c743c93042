"""The mean cost of a poll of each source in requests, bytes and seconds, in which old polls fade.

A request that serves many items counts once, so that each of them takes a part of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

REMEMBERED = 1000.0
"""The number of polls after which a measurement counts a third."""


@dataclass(frozen=True, slots=True)
class CostSums:
    """Sums over polls: how many, and what they took."""

    polls: float = 0.0
    requests: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0

    def with_poll(self, requests: float, received: float, seconds: float) -> CostSums:
        """Return the sums with one more poll."""
        keep = 1.0 - 1.0 / REMEMBERED
        return CostSums(
            self.polls * keep + 1.0,
            self.requests * keep + requests,
            self.bytes * keep + received,
            self.seconds * keep + seconds,
        )

    def mean(self) -> tuple[float, float, float]:
        """Return the requests, bytes and seconds of a mean poll; one request while nothing is known.

        >>> CostSums().mean()
        (1.0, 0.0, 0.0)
        >>> CostSums().with_poll(1, 500, 0.2).with_poll(0, 500, 0.2).mean()  # doctest: +ELLIPSIS
        (0.49..., 500.0, 0.2)
        """
        if not self.polls > 0:
            return 1.0, 0.0, 0.0
        return self.requests / self.polls, self.bytes / self.polls, self.seconds / self.polls


class PollCosts:
    """The costs of polls by source."""

    def __init__(self) -> None:
        self._sums: dict[str, CostSums] = {}

    def add(self, source: str, requests: float, received: float, seconds: float) -> None:
        """Take the cost of one poll."""
        self._sums[source] = self._sums.get(source, CostSums()).with_poll(requests, received, seconds)

    def mean(self, source: str) -> tuple[float, float, float]:
        """Return the requests, bytes and seconds of a mean poll of this source."""
        return self._sums.get(source, CostSums()).mean()

    def pack(self) -> bytes:
        """Return the costs as the store keeps them."""
        return json.dumps(
            {name: [one.polls, one.requests, one.bytes, one.seconds] for name, one in self._sums.items()}
        ).encode()

    @classmethod
    def unpack(cls, packed: bytes | None) -> PollCosts:
        """Return the costs that were stored; none without any."""
        poll_costs = cls()
        if packed:
            poll_costs._sums = {
                name: CostSums(*map(float, sums)) for name, sums in json.loads(packed).items()
            }
        return poll_costs
