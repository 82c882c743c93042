"""Plans the queries of ``afresh probes``, sends them to the server, and collects the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from afresh.cli.planning.probe_inputs import ProbeWorld
from afresh.cli.planning.probes_command import ProbeOptions
from afresh.plots.panels import Panel, Series
from afresh.probes.campaign import Campaign
from afresh.probes.candidates import ExactTotals, ResultTotals, find_candidates
from afresh.probes.greedy_probes import Probe, greedy_probes
from afresh.probes.rounds import IndexServer, ProbeServer, ProbeStep, run_campaign, run_probes
from afresh.sources.search.totals import LearnedTotals


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """The result of ``afresh probes``: the requests that were made, as columns, and a summary."""

    rows: dict[str, list[Any]]
    summary: dict[str, Any]
    covered: tuple[int, ...]  # records, after each request

    def panel(self) -> Panel:
        """Return a chart of the records covered after each request; a dashed line shows one per request."""
        requests = np.arange(len(self.covered) + 1.0)
        grown = np.array([0, *self.covered], dtype=np.float64)
        alone = np.minimum(requests, self.summary["tuples"])
        series = (Series("probes", requests, grown), Series("one by one", requests, alone, "dashed"))
        return Panel("Records refreshed", "requests", "records", series)


def plan_and_ask(
    world: ProbeWorld,
    options: ProbeOptions,
    on_step: Callable[[float], None],
    live: ProbeServer | None = None,
) -> ProbeOutcome:
    """Plan the queries and send them to ``live``, or to the server's records in ``world`` if it is None.

    ``on_step`` is called with the number of records covered so far."""
    totals: ExactTotals | LearnedTotals = LearnedTotals(world.relation, world.proxy or world.relation)
    if world.server is not None and world.proxy is None:
        totals = ExactTotals(world.server)
    indexed = world.server or world.relation
    asked = live or IndexServer(indexed, world.server_keys, options.page_size, options.limit)
    if options.method == "auto":
        campaign = _make_campaign(world, options, totals, options.quota)
        steps = run_campaign(campaign, asked, world.keys, lambda left: on_step(world.tuples - left))
        chosen: tuple[Probe, ...] = ()
    else:
        chosen = _choose_greedily(world, options, totals)
        steps = run_probes(chosen, asked, world.keys, pages=1 if options.method == "2" else None)
        # The bound must be for as many requests as the greedy algorithm made.
        campaign = _make_campaign(world, options, totals, None if options.quota is None else len(steps))
    summary = _summary(world, options, steps, campaign, is_known=isinstance(totals, ExactTotals))
    if options.method != "auto":
        summary |= _paper_measures(chosen, world.tuples)
    return ProbeOutcome(_rows(world, steps), summary, tuple(accumulate(step.new for step in steps)))


def _make_campaign(
    world: ProbeWorld, options: ProbeOptions, totals: ExactTotals | LearnedTotals, quota: int | None
) -> Campaign:
    return Campaign(
        find_candidates(world.relation, totals, options.page_size, bulk=options.keys_at_once),
        options.page_size,
        world.values,
        limit=options.limit,
        quota=quota,
        learned=totals if isinstance(totals, LearnedTotals) else None,
    )


def _choose_greedily(world: ProbeWorld, options: ProbeOptions, totals: ResultTotals) -> tuple[Probe, ...]:
    """Choose queries as Yang's paper does. Method 1 reads all pages of a query, method 2 the first."""
    return greedy_probes(
        world.relation,
        totals,
        options.page_size,
        method=int(options.method),
        pool=options.pool,
        quota=options.quota,
        values=world.values,
    )


def _paper_measures(chosen: Sequence[Probe], tuples: int) -> dict[str, float]:
    """Return what the paper defines for its methods (Yang et al. 2010, §5.1), before anything is sent: the
    requests ΣN(q), and the coverage ratio Σ E_coverage(q)/|L|, which counts a record once for each query that
    is expected to return it, so that it may exceed 1."""
    expected = sum(probe.expected for probe in chosen)
    return {
        "planned": sum(probe.requests for probe in chosen),
        "coverage_ratio": expected / tuples if tuples else 1.0,
    }


def _summary(
    world: ProbeWorld,
    options: ProbeOptions,
    steps: Sequence[ProbeStep],
    campaign: Campaign,
    *,
    is_known: bool,
) -> dict[str, Any]:
    done = sum(step.new for step in steps)
    # The bound is the smallest number of requests or, with a quota, the most that it could cover.
    bound_of = "requests" if options.quota is None else "weight" if world.weighed else "records"
    return {
        "requests": len(steps),
        "covered": done,
        "tuples": world.tuples,
        "coverage_ratio": done / world.tuples if world.tuples else 1.0,
        "distinct_coverage": done / world.tuples if world.tuples else 1.0,
        "speedup_ratio": done / len(steps) if steps else 0.0,
        "bound": campaign.bound,
        "bound_of": bound_of,
        "totals": "known" if is_known else "estimated",
        "planned": campaign.planned_requests,
        "look_ups": sum(not step.keywords for step in steps),
        "bulk_look_ups": sum(step.named > 1 for step in steps),
        "missing": int(campaign.missing.sum()),
        "worthless": int((world.values <= 0).sum()),
        "doubled": len({key for step in steps for key in step.doubled}),
        "untold": sum(step.total is None for step in steps),
        "cut_short": sum(step.cut for step in steps),
        "method": options.method,
        "quota": options.quota,
    }


def _rows(world: ProbeWorld, steps: Sequence[ProbeStep]) -> dict[str, list[Any]]:
    """Return the columns of the output. Each look-up, and each series of pages of one query, is one row."""
    names = ("query", "kind", "page", "requests", "total", "expected", "new", "covered")
    rows: dict[str, list[Any]] = {name: [] for name in names}
    covered = 0
    for (keywords, key), run in groupby(steps, lambda step: (step.keywords, step.key)):
        pages = list(run)
        new = sum(step.new for step in pages)
        covered += new
        text = " ".join(str(world.relation.keywords[word]) for word in keywords) if keywords else key
        named = pages[0].named
        if named > 1:
            text = f"{key} and {named - 1:,} more"
        kind = "query" if keywords else "look-up" if named == 1 else "bulk look-up"
        total = pages[-1].total or 0
        expected = sum(step.expected for step in pages)
        cells = (text, kind, pages[0].page, len(pages), total, expected, new, covered)
        for name, cell in zip(names, cells, strict=True):
            rows[name].append(cell)
    return rows
