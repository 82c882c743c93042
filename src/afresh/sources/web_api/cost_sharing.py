"""Shares the cost of each request among the items that its answer is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from afresh.sources.capabilities import share_cost
from afresh.sources.http.client import RequestCost
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.values.fetched import Fetched


class CostSharing:
    """Shares the cost of each request among its results. Without results, the next request takes it over."""

    def __init__(self) -> None:
        self._unpaid = RequestCost()

    def share(self, found: Sequence[Fetched | None], answer: RecordsAnswer) -> list[Fetched | None]:
        before = self._unpaid
        requests, received = before.requests + answer.requests, before.bytes + answer.bytes
        seconds = before.seconds + answer.seconds
        results = [one for one in found if one is not None]
        if not results:
            self._unpaid = RequestCost(requests, received, seconds)
            return list(found)
        self._unpaid = RequestCost()
        paid = share_cost(results, requests=requests, seconds=seconds)
        if received:
            paid = [replace(one, bytes=0 if at else received) for at, one in enumerate(paid)]
        left = iter(paid)
        return [None if one is None else next(left) for one in found]
