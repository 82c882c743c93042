"""Rounds against a server: every request with what was expected of it and what it brought.

The contents of pages count, not the totals that the server claims: a page that is empty, or holds only what
earlier pages of its query held, ends the query, and so does the thousandth page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from afresh.probes.campaign import Campaign, local_tuples
from afresh.probes.greedy_probes import Probe
from afresh.probes.page_plan import LookUp
from afresh.probes.probe_server import ProbeAnswer, ProbeServer, ServerStoppedError

_MOST_PAGES = 1000  # of one query


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One request: ``keywords`` of a query (none: the look-up of ``key``), its ``page``, and what it brought.

    ``total`` is None where the server reported none. ``cut``: the query ended before its reported total.
    ``doubled`` are the keys of which the answer held several records.
    """

    keywords: tuple[int, ...]
    key: str
    page: int
    total: int | None
    expected: float
    new: int
    cut: bool = False
    doubled: tuple[str, ...] = ()


def run_campaign(
    campaign: Campaign,
    server: ProbeServer,
    keys: Sequence[str],
    on_step: Callable[[int], None] = lambda _: None,
) -> tuple[ProbeStep, ...]:
    """Make requests until the campaign is done; ``keys`` are those of the local tuples.

    ``on_step`` is called with the number of tuples still wanted.
    """
    places = {key: place for place, key in enumerate(keys)}
    steps: list[ProbeStep] = []
    seen = _SeenKeys(server.page_size)
    with suppress(ServerStoppedError):
        while (request := campaign.next_request()) is not None:
            expected = campaign.expected(request)
            if isinstance(request, LookUp):
                key = keys[request.tuple]
                answer = server.look_up(key)
                new = campaign.learn(request, local_tuples(answer.keys, places))
                steps.append(
                    ProbeStep((), key, 1, len(answer.keys), expected, new, doubled=_doubled_keys(answer))
                )
            else:
                keywords, number = campaign.words(request), request.number
                answer = server.page(keywords, number)
                over = seen.ends(keywords, number, answer)
                new = campaign.learn(request, local_tuples(answer.keys, places), answer.total, over=over)
                cut = over and seen.promised(answer) > number
                steps.append(
                    ProbeStep(keywords, "", number, answer.total, expected, new, cut, _doubled_keys(answer))
                )
            on_step(int(campaign.wanted.sum()))
    return tuple(steps)


def run_probes(
    probes: Sequence[Probe], server: ProbeServer, keys: Sequence[str], *, pages: int | None = None
) -> tuple[ProbeStep, ...]:
    """Send the paper's queries: all result pages of each (Method 1), or the first ``pages`` (Method 2: 1)."""
    places = {key: place for place, key in enumerate(keys)}
    wanted = set(range(len(keys)))
    steps: list[ProbeStep] = []
    seen = _SeenKeys(server.page_size)
    with suppress(ServerStoppedError):
        for probe in probes:
            number, last = 0, 1
            while number < last:
                number += 1
                answer = server.page(probe.keywords, number)
                found = wanted.intersection(local_tuples(answer.keys, places))
                wanted -= found
                over, promised = seen.ends(probe.keywords, number, answer), seen.promised(answer)
                last = number if over else promised if pages is None else min(promised, pages)
                share = probe.expected / max(probe.requests, 1.0)
                cut = over and promised > number
                steps.append(
                    ProbeStep(
                        probe.keywords,
                        "",
                        number,
                        answer.total,
                        share,
                        len(found),
                        cut,
                        _doubled_keys(answer),
                    )
                )
    return tuple(steps)


class _SeenKeys:
    """The keys that the pages of each query held so far."""

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._keys: dict[tuple[int, ...], set[str]] = {}

    def promised(self, answer: ProbeAnswer) -> int:
        """The number of pages by the reported total."""
        return max(1, -(-(answer.total or 0) // self._page_size))

    def ends(self, keywords: tuple[int, ...], number: int, answer: ProbeAnswer) -> bool:
        """Whether this page ends its query."""
        seen = self._keys.setdefault(keywords, set())
        nothing_new = seen.issuperset(answer.keys)
        seen.update(answer.keys)
        return nothing_new or number >= _MOST_PAGES


def _doubled_keys(answer: ProbeAnswer) -> tuple[str, ...]:
    if len(set(answer.keys)) == len(answer.keys):
        return ()
    return tuple(sorted({key for key in answer.keys if answer.keys.count(key) > 1}))
