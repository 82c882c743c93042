"""``afresh plan`` of a dataset: passes over its parts, one search for the price, one output file per part."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from afresh.allocation.large.cutoff import Cutoff
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.item_columns import WHOLE, PlanSums, PriceWindow
from afresh.allocation.large.plan_search import FoundPlan, find_plan
from afresh.cli.options import PlanningOptions
from afresh.cli.planning.datasets.executor import PartExecutor, open_executor, path_for
from afresh.cli.planning.datasets.item_parts import (
    ItemPart,
    PartPlan,
    PartSurvey,
    Uncertainty,
    histogram_of_part,
    level_of,
    log_rates_of_part,
    sums_of_part,
    survey_part,
    write_part,
)
from afresh.cli.planning.datasets.output_folder import OutputFolder, digest_of
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import format_age, format_number, print_json, print_summary
from afresh.tables.columns import Kind
from afresh.tables.dataset import DatasetPart, find_parts
from afresh.values.errors import UsageError
from afresh.values.units import UNIT_NAMES, BudgetRate, unit_seconds
from afresh.version import __version__

_BYTES_PER_ITEM = 16  # a guess, which only decides whether Numba is worth its loading time

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """What ``plan`` prints of a dataset: the plan found, its budget per unit, and the number of items."""

    found: FoundPlan
    budget: float
    rows: int


def plan_dataset(
    items: str,
    budget: BudgetRate,
    options: PlanningOptions,
    kinds: dict[str, Kind],
    others: Mapping[str, str | None],
) -> None:
    """Plan the items of a dataset, write one file per part to the folder ``-o``, and print a summary.
    ``kinds`` are the columns to write, ``others`` options of the command that a dataset may not have."""
    refuse_options(options, others)
    parts = find_parts(path_for(options.on, items))
    folder = None if options.output is None else OutputFolder(path_for(options.on, options.output))
    if folder is None and not options.as_json:
        raise UsageError(
            "the plan of a dataset is written to a folder: give -o plan/, or --json for a summary"
        )
    if folder is not None and any(folder.target(part.name) == part.path for part in parts):
        raise UsageError(f"-o {options.output}: is the folder of the items: give another one")
    key = _key(parts, budget, options, kinds)
    saved = None if folder is None else folder.begin(key)
    with open_executor(options.on or "local") as executor:
        run = DatasetRun(executor, parts)
        if saved is None:
            if options.on == "duckdb":
                from afresh.cli.planning.datasets.duckdb_session import refuse_repeated_items

                refuse_repeated_items(parts)
            plan, uncertainty = _solve(run, budget, unit_seconds(options.unit))
            if folder is not None:
                folder.save(key, [part.name for part in parts], _to_json(plan, uncertainty))
        else:
            plan, uncertainty = _from_json(saved)
        kept = 0 if folder is None else _write(run, folder, plan, uncertainty, kinds)
    _print(plan, options, len(parts), kept)


class DatasetRun:
    """The parts of a dataset of items and the executor that processes them, with a progress bar per pass.
    It has the two passes that ``find_plan`` needs."""

    def __init__(self, executor: PartExecutor, parts: Sequence[DatasetPart]) -> None:
        self._executor, self._sizes = executor, [part.size for part in parts]
        items = sum(self._sizes) // _BYTES_PER_ITEM
        self.parts = [ItemPart(part, items) for part in parts]

    def survey(self) -> list[PartSurvey]:
        """Check all rows and return what each part has."""
        return self.run("reading", survey_part, self.parts)

    def with_uncertainty(self, interval: float, level: float) -> Uncertainty:
        """Let all further passes read uncertain rates as rates to plan with; return how they are read."""
        uncertainty = Uncertainty(interval, level)
        self.read_with(uncertainty)
        sums = self.run("reading rates", log_rates_of_part, self.parts)
        number = sum(each for _, each in sums)
        mean = math.fsum(total for total, _ in sums) / number if number else 0.0
        uncertainty = replace(uncertainty, mean_log=mean)
        self.read_with(uncertainty)
        return uncertainty

    def read_with(self, uncertainty: Uncertainty | None) -> None:
        self.parts = [replace(part, uncertainty=uncertainty) for part in self.parts]

    def build_histogram(self, window: PriceWindow = WHOLE) -> Histogram:
        """Return the histogram of the items of all parts whose price lies in ``window``."""
        return merge_histograms(
            self.run("counting", histogram_of_part, [(part, window) for part in self.parts])
        )

    def write_plan(self, cutoff: Cutoff, scale: float, *, with_age: bool) -> PlanSums:
        """Return the sums over the plan with this cut-off and scale; the frequencies are written later."""
        return self.sums([cutoff], scale, with_age=with_age)[0]

    def sums(self, cutoffs: Sequence[Cutoff], scale: float = 1.0, *, with_age: bool = True) -> list[PlanSums]:
        """Return the sums over the plans with these cut-offs, in one pass."""
        jobs = [(part, cutoffs, scale, with_age) for part in self.parts]
        each = self.run("adding up", sums_of_part, jobs)
        return [PlanSums.of_parts(own) for own in zip(*each, strict=True)]

    def run(self, label: str, step: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
        """Return the result of a step for every job, in order."""
        return run_step(self._executor, label, step, jobs)


def run_step(
    executor: PartExecutor, label: str, step: Callable[[Job], Result], jobs: Sequence[Job]
) -> list[Result]:
    """Return the result of a step for every job, in order, with a progress bar."""
    results: list[Result] = []
    with ProgressBar(f"{label}, {len(jobs)} parts", len(jobs)) as progress:
        for result in executor.run(step, jobs):
            results.append(result)
            progress.reach(len(results))
    return results


def merge_histograms(histograms: Sequence[Histogram]) -> Histogram:
    """Return the sum of many histograms; adding neighbours first costs less than one after the other."""
    several = list(histograms)
    while len(several) > 1:
        pairs = [several[at : at + 2] for at in range(0, len(several), 2)]
        several = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return several[0]


def _solve(run: DatasetRun, budget: BudgetRate, unit_s: float) -> tuple[DatasetPlan, Uncertainty | None]:
    surveys = run.survey()
    rows = sum(survey.rows for survey in surveys)
    total = budget.total_per_second(rows) * unit_s
    level = level_of(surveys, [own.part for own in run.parts])
    uncertainty, histogram = None, None
    if level is not None and total > 0:
        interval = math.fsum(survey.total_cost for survey in surveys) / total
        uncertainty = run.with_uncertainty(interval, level)
    else:
        histogram = merge_histograms([survey.histogram for survey in surveys])
    del surveys
    return DatasetPlan(find_plan(run, total, histogram), total, rows), uncertainty


def _write(
    run: DatasetRun,
    folder: OutputFolder,
    plan: DatasetPlan,
    uncertainty: Uncertainty | None,
    kinds: dict[str, Kind],
) -> int:
    """Write the parts that are not there yet; return how many are."""
    run.read_with(uncertainty)
    written = folder.written()
    found = plan.found
    jobs = [
        PartPlan(own, folder.target(own.part.name), found.cutoff, found.scale, kinds)
        for own in run.parts
        if own.part.name not in written
    ]
    if jobs:
        run.run("writing", write_part, jobs)
    folder.check_written([own.part.name for own in run.parts])
    return len(run.parts) - len(jobs)


def refuse_options(options: PlanningOptions, others: Mapping[str, str | None]) -> None:
    """Raise ``UsageError`` for options that only a single file can have."""
    given: dict[str, str | None] = {**others, "--order": options.order, "--policy": options.policy}
    right = {"--objective": "freshness", "--order": "fixed", "--policy": "optimal"}
    named = [
        f"{name} {value}" for name, value in given.items() if value is not None and value != right.get(name)
    ]
    sets = {"--caps": options.caps, "--views": options.views, "--windows": options.windows}
    named += [name for name, value in sets.items() if value]
    if named:
        can = "which plan freshness in fixed order, with weights and costs"
        raise UsageError(f"{named[0]}: not with a dataset or --on, {can}")


def _key(
    parts: Sequence[DatasetPart], budget: BudgetRate, options: PlanningOptions, kinds: dict[str, Kind]
) -> str:
    return digest_of(
        {
            "afresh": __version__,
            "parts": [asdict(part) for part in parts],
            "budget": repr(budget),
            "unit": options.unit,
            "columns": list(kinds),
        }
    )


def _to_json(plan: DatasetPlan, uncertainty: Uncertainty | None) -> dict[str, Any]:
    return {"plan": asdict(plan), "uncertainty": None if uncertainty is None else asdict(uncertainty)}


def _from_json(saved: dict[str, Any]) -> tuple[DatasetPlan, Uncertainty | None]:
    plan, told = saved["plan"], saved["uncertainty"]
    found = plan["found"]
    cutoff = None if found["cutoff"] is None else Cutoff(**found["cutoff"])
    whole = FoundPlan(cutoff, found["scale"], PlanSums(**found["sums"]), found["total_weight"])
    return DatasetPlan(whole, plan["budget"], plan["rows"]), None if told is None else Uncertainty(**told)


def _print(plan: DatasetPlan, options: PlanningOptions, parts: int, kept: int) -> None:
    found, unit = plan.found, options.unit
    gap = found.gap(plan.budget, 2.0**-24)
    if options.as_json:
        achieved = {"budget": plan.budget, "spend": found.sums.spend, "freshness": found.freshness}
        achieved |= {"age": found.age, "multiplier": found.multiplier, "gap": gap}
        print_json({**achieved, "items": plan.rows, "dropped": found.sums.dropped, "unit": unit})
        return
    per = f"per {UNIT_NAMES[unit]}"
    fewer = f", {found.sums.dropped:,} of them dropped" if found.sums.dropped else ""
    before = f", of which {kept:,} were there already" if kept else ""
    rows = [
        ("items", f"{plan.rows:,}{fewer}"),
        (
            "budget",
            f"{format_number(plan.budget)} {per}, of which {format_number(found.sums.spend)} is spent",
        ),
        ("freshness", f"{found.freshness:.4f}"),
        ("age", format_age(found.age, unit)),
        ("next unit", f"at the margin, multiplier {format_number(found.multiplier)}"),
        ("gap", f"no plan is better by more than {format_number(gap)} in Σ weight·value"),
        ("parts", f"{parts:,}{before}"),
    ]
    print_summary("optimal plan for freshness, refreshed at even intervals", rows)
