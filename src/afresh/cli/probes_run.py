"""The work of ``afresh probes``: plan, ask the server, and say what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from afresh.cli.probes_files import World
from afresh.plots.panels import Panel, Series
from afresh.probes.campaign import Campaign
from afresh.probes.candidates import ExactTotals, ResultTotals, find_candidates
from afresh.probes.greedy_probes import greedy_probes
from afresh.probes.rounds import IndexServer, ProbeServer, ProbeStep, run_campaign, run_probes
from afresh.sources.search.totals import LearnedTotals


@dataclass(frozen=True, slots=True)
class Question:
    """How the server answers, and what is asked of it."""

    page_size: int
    limit: int | None
    method: str
    pool: int
    quota: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Every request made, as rows, and the summary."""

    rows: dict[str, list[Any]]
    summary: dict[str, Any]
    covered: tuple[int, ...]  # after each request

    def panel(self) -> Panel:
        """Records covered against requests, beside looking them up one by one."""
        requests = np.arange(len(self.covered) + 1.0)
        grown = np.array([0, *self.covered], dtype=np.float64)
        alone = np.minimum(requests, self.summary["tuples"])
        series = (Series("probes", requests, grown), Series("one by one", requests, alone, "dashed"))
        return Panel("Records refreshed", "requests", "records", series)


def carry_out(
    world: World, question: Question, on_step: Callable[[float], None], live: ProbeServer | None = None
) -> Outcome:
    """Plan and ask; ``on_step`` hears how many records are covered. ``live``: a server to be asked itself."""
    totals = _totals(world)
    server = live or IndexServer(
        world.server or world.relation, world.server_keys, question.page_size, question.limit
    )
    if question.method == "auto":
        campaign = _campaign(world, question, totals, question.quota)
        asked = run_campaign(campaign, server, world.keys, lambda left: on_step(world.tuples - left))
    else:
        asked = _paper(world, question, totals, server)
        # The bound is on what as many requests could have done.
        campaign = _campaign(world, question, totals, None if question.quota is None else len(asked))
    return _outcome(world, question, asked, campaign, known=isinstance(totals, ExactTotals))


def _totals(world: World) -> ExactTotals | LearnedTotals:
    """Known where the server's records are at hand and no others are to stand for them."""
    if world.server is not None and world.proxy is None:
        return ExactTotals(world.server)
    return LearnedTotals(world.relation, world.proxy or world.relation)


def _campaign(
    world: World, question: Question, totals: ExactTotals | LearnedTotals, quota: int | None
) -> Campaign:
    return Campaign(
        find_candidates(world.relation, totals, question.page_size),
        question.page_size,
        world.values,
        limit=question.limit,
        quota=quota,
        learned=totals if isinstance(totals, LearnedTotals) else None,
    )


def _paper(
    world: World, question: Question, totals: ResultTotals, server: ProbeServer
) -> tuple[ProbeStep, ...]:
    method = int(question.method)
    chosen = greedy_probes(
        world.relation,
        totals,
        question.page_size,
        method=method,
        pool=question.pool,
        quota=question.quota,
        values=world.values,
    )
    return run_probes(chosen, server, world.keys, pages=1 if method == 2 else None)


def _outcome(
    world: World, question: Question, steps: Sequence[ProbeStep], campaign: Campaign, *, known: bool
) -> Outcome:
    covered = np.cumsum([step.new for step in steps]).tolist()
    done = covered[-1] if covered else 0
    look_ups = sum(not step.keywords for step in steps)
    summary = {
        "requests": len(steps),
        "covered": done,
        "tuples": world.tuples,
        "coverage_ratio": done / world.tuples if world.tuples else 1.0,
        "speedup_ratio": done / len(steps) if steps else 0.0,
        "bound": campaign.bound,
        "bound_of": _unit(world, question),
        "totals": "known" if known else "estimated",
        "planned": campaign.planned_requests,
        "look_ups": look_ups,
        "missing": int(campaign.missing.sum()),
        "worthless": int((world.values <= 0).sum()),
        "doubled": len({key for step in steps for key in step.doubled}),
        "untold": sum(step.total is None for step in steps),
        "cut_short": sum(step.cut for step in steps),
        "method": question.method,
        "quota": question.quota,
    }
    return Outcome(_rows(world, steps), summary, tuple(covered))


def _unit(world: World, question: Question) -> str:
    """What the bound is a number of: the least requests, or the most that the quota could bring."""
    if question.quota is None:
        return "requests"
    return "weight" if world.weighed else "records"


def _rows(world: World, steps: Sequence[ProbeStep]) -> dict[str, list[Any]]:
    """One row for each run of pages of one query, or look-up."""
    names = ("query", "kind", "page", "requests", "total", "expected", "new", "covered")
    rows: dict[str, list[Any]] = {name: [] for name in names}
    covered = 0
    for (keywords, key), run in groupby(steps, lambda step: (step.keywords, step.key)):
        pages = list(run)
        new = sum(step.new for step in pages)
        covered += new
        text = " ".join(str(world.relation.keywords[word]) for word in keywords) if keywords else key
        cells = (
            text,
            "query" if keywords else "look-up",
            pages[0].page,
            len(pages),
            pages[-1].total or 0,
            sum(step.expected for step in pages),
            new,
            covered,
        )
        for name, cell in zip(names, cells, strict=True):
            rows[name].append(cell)
    return rows
