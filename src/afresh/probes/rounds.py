"""A round carried out against a server: every request with what was expected of it and what it brought."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from afresh.probes.campaign import Campaign, covered_places
from afresh.probes.candidates import Candidates
from afresh.probes.greedy_probes import Probe
from afresh.probes.requests import LookUp
from afresh.probes.server import Server, StoppedError


@dataclass(frozen=True, slots=True)
class Step:
    """One request: ``keywords`` of a query (none: the look-up of ``key``), its ``page``, what it brought."""

    keywords: tuple[int, ...]
    key: str
    page: int
    total: int
    expected: float
    new: int


def run_campaign(
    campaign: Campaign,
    candidates: Candidates,
    server: Server,
    keys: Sequence[str],
    on_step: Callable[[int], None] = lambda _: None,
) -> tuple[Step, ...]:
    """Ask until the campaign has nothing left to ask; ``keys`` are those of the local tuples.

    ``on_step`` hears how many tuples are still wanted.
    """
    places = {key: place for place, key in enumerate(keys)}
    steps: list[Step] = []
    with suppress(StoppedError):
        while (request := campaign.next_request()) is not None:
            expected = campaign.expected(request)
            if isinstance(request, LookUp):
                key = keys[request.tuple]
                answer = server.look_up(key)
                new = campaign.learn(request, covered_places(answer.keys, places))
                steps.append(Step((), key, 1, len(answer.keys), expected, new))
            else:
                keywords = tuple(int(word) for word in candidates.sets[request.query] if word >= 0)
                answer = server.page(keywords, request.number)
                new = campaign.learn(request, covered_places(answer.keys, places), answer.total)
                steps.append(Step(keywords, "", request.number, answer.total or 0, expected, new))
            on_step(int(campaign.wanted.sum()))
    return tuple(steps)


def run_probes(
    probes: Sequence[Probe], server: Server, keys: Sequence[str], *, pages: int | None = None
) -> tuple[Step, ...]:
    """Send the paper's queries: all result pages of each (Method 1), or the first ``pages`` (Method 2: 1)."""
    places = {key: place for place, key in enumerate(keys)}
    wanted = set(range(len(keys)))
    steps: list[Step] = []
    for probe in probes:
        number, last = 0, 1
        while number < last:
            number += 1
            try:
                answer = server.page(probe.keywords, number)
            except StoppedError:
                return tuple(steps)
            found = wanted.intersection(covered_places(answer.keys, places))
            wanted -= found
            total = answer.total or 0
            if not answer.keys:
                last = number  # a server that gives no more ends the query, whatever total it claims
            else:
                last = max(1, -(-total // server.page_size))
                last = last if pages is None else min(last, pages)
            share = probe.expected / max(probe.requests, 1.0)
            steps.append(Step(probe.keywords, "", number, total, share, len(found)))
    return tuple(steps)
