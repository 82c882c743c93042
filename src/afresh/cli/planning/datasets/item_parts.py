"""The steps of a plan over one part of a dataset of items: count it, build its histogram, write its plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh.allocation.explain import STATUSES, explain_parts
from afresh.allocation.large.allocate_large import choose_passes
from afresh.allocation.large.cutoff import Cutoff
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.item_columns import WHOLE, ItemColumns, PlanSums, PriceWindow
from afresh.cli.planning.datasets.output_folder import part_file
from afresh.cli.planning.planned_items import DECAY, ITEM, NUMBERS, POLLS, UNCERTAIN
from afresh.rates.estimator import log_of_survival_rates, posterior_shape, uncertain_rate
from afresh.tables.columns import Column, Kind
from afresh.tables.dataset import DatasetPart
from afresh.tables.input_file import InputFile
from afresh.tables.reading import CheckedTable, scan_table
from afresh.tables.text_columns import as_texts
from afresh.tables.writing import TableWriter
from afresh.values.arrays import Floats
from afresh.values.errors import InputError, UsageError
from afresh.values.results import Allocation

_ROWS = 1 << 22  # rows whose histogram is built at once: an empty table of bins takes 17 MB
_BATCH_ROWS = 1 << 20
_RATE, _WEIGHT, _COST, _UPDATE_COST, _LOWER, _UPPER = NUMBERS


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """How rates with the column ``low`` become rates to plan with: the mean ``interval`` of the plan, the
    ``level`` of the column, and the mean ln λ of all items, once it is known (``uncertain_rate``)."""

    interval: float
    level: float
    mean_log: float | None = None


@dataclass(frozen=True, slots=True)
class ItemPart:
    """A part of the items, and how its rates are read. ``items`` is about how many items all parts have."""

    part: DatasetPart
    items: int
    uncertainty: Uncertainty | None = None


@dataclass(frozen=True, slots=True)
class PartSurvey:
    """What the first pass finds in a part. ``histogram`` is that of the rates as they are in the file;
    ``level`` is None if the part has no column ``low``."""

    rows: int
    total_cost: float
    level: float | None
    histogram: Histogram


def survey_part(job: ItemPart) -> PartSurvey:
    """Check every row of a part, and return what the plan needs to know of it first."""
    rows, total_cost, level, is_uncertain = 0, 0.0, None, False
    histograms: list[Histogram] = []
    passes = choose_passes("auto", job.items)
    columns = [ITEM, *NUMBERS, *UNCERTAIN, POLLS, DECAY]
    with InputFile(job.part.path) as source:
        batches = _checked(scan_table(source, columns, batch_rows=_BATCH_ROWS))
        for several in _together(batches):
            for batch in several:
                rows += batch.rows
                total_cost += float(batch.numbers("cost").sum()) if "cost" in batch else batch.rows
                if "low" in batch:
                    is_uncertain = True
                    level = _one_level(batch, level)
            histograms.append(passes.build_histogram(_columns(several, None)))
    if is_uncertain and level is None:
        level = UNCERTAIN[1].default if isinstance(UNCERTAIN[1].default, float) else 0.9
    return PartSurvey(rows, total_cost, level, sum(histograms[1:], start=histograms[0]))


def histogram_of_part(job: tuple[ItemPart, PriceWindow]) -> Histogram:
    """Return the histogram of the items of a part whose price lies in a window."""
    own, window = job
    passes = choose_passes("auto", own.items)
    # The one window without an identity of its own is that of all prices, and it travels between processes.
    window = WHOLE if window == WHOLE else window
    found: list[Histogram] = [passes.build_histogram(columns, window) for columns in _read(own)]
    return sum(found[1:], start=found[0])


def log_rates_of_part(job: ItemPart) -> tuple[float, int]:
    """Return the sum of ln λ over the items of a part, and their number; see ``log_of_survival_rates``."""
    assert job.uncertainty is not None
    total, number = 0.0, 0
    for batch in _scan(job, [_RATE, *UNCERTAIN]):
        found = log_of_survival_rates(*_belief(batch, job.uncertainty), job.uncertainty.interval)
        total, number = total + found[0], number + found[1]
    return total, number


def sums_of_part(job: tuple[ItemPart, Sequence[Cutoff], float, bool]) -> list[PlanSums]:
    """Return the sums over a part of the plans with these cut-offs, all with one scale, in one reading.
    The flag asks for ages too."""
    own, cutoffs, scale, with_age = job
    found: list[list[PlanSums]] = [[] for _ in cutoffs]
    for columns in _read(own):
        for cutoff, sums in zip(cutoffs, found, strict=True):
            sums.append(_frequencies(own, columns, cutoff, scale, with_age=with_age)[1])
    return [PlanSums.of_parts(sums) for sums in found]


@dataclass(frozen=True, slots=True)
class PartPlan:
    """A part whose plan is to be written to ``target``. Without a ``cutoff`` no item is refreshed."""

    own: ItemPart
    target: str
    cutoff: Cutoff | None
    scale: float
    kinds: dict[str, Kind]


def write_part(job: PartPlan) -> int:
    """Write the plan of a part, one row for each item, and return the number of rows. An item that is twice
    in the part is an error, and the file does not appear."""
    rows = 0
    with part_file(job.target) as path, TableWriter(path, job.kinds) as writer:
        for batch in _scan(job.own, [ITEM, *_needed(job.own)], unique="item"):
            writer.write(_plan_rows(job, batch))
            rows += batch.rows
    return rows


def _plan_rows(job: PartPlan, batch: CheckedTable) -> dict[str, Any]:
    columns = _columns([batch], job.own.uncertainty)
    if job.cutoff is None:
        frequency: Floats = np.zeros(columns.size, dtype=columns.rates.dtype)
    else:
        frequency = _frequencies(job.own, columns, job.cutoff, job.scale)[0]
    found: dict[str, Any] = {"item": batch.text("item"), "frequency": frequency}
    if "interval" in job.kinds:
        with np.errstate(divide="ignore", over="ignore"):
            found["interval"] = 1 / np.asarray(frequency, dtype=np.float64)
    if {"freshness", "age", "marginal", "status"} & job.kinds.keys():
        found |= _details(columns, frequency, 0.0 if job.cutoff is None else job.cutoff.multiplier)
    return {name: found[name] for name in job.kinds}


def _details(columns: ItemColumns, frequency: Floats, multiplier: float) -> dict[str, Any]:
    plan = Allocation(frequency, multiplier, spend=0.0, gap=0.0, freshness=0.0, age=0.0, dropped=0)
    detail = explain_parts(columns.rates, plan, weights=columns.weights, costs=columns.costs)(slice(None))
    status = as_texts(STATUSES).take(detail.status)
    found = {name: getattr(detail, name) for name in ("freshness", "age", "marginal")}
    return {**found, "status": status}


def _frequencies(
    own: ItemPart, columns: ItemColumns, cutoff: Cutoff, scale: float, *, with_age: bool = False
) -> tuple[Floats, PlanSums]:
    passes = choose_passes("auto", own.items)
    given = [each for each in (columns.rates, columns.weights, columns.costs) if each is not None]
    out: Floats = np.empty(columns.size, dtype=np.result_type(*given))
    sums = [
        passes.write_plan(
            columns.part(start, start + passes.PART),
            cutoff,
            scale,
            out[start : start + passes.PART],
            with_age=with_age,
        )
        for start in range(0, columns.size, passes.PART)
    ]
    return out, PlanSums.of_parts(sums)


def _read(own: ItemPart) -> Iterator[ItemColumns]:
    for several in _together(_scan(own, _needed(own))):
        yield _columns(several, own.uncertainty)


def _needed(own: ItemPart) -> list[Column]:
    return [_RATE, _WEIGHT, _COST, *([] if own.uncertainty is None else [*UNCERTAIN, POLLS])]


def _scan(own: ItemPart, columns: Sequence[Column], unique: str | None = None) -> Iterator[CheckedTable]:
    with InputFile(own.part.path) as source:
        yield from scan_table(source, columns, unique=unique, batch_rows=_BATCH_ROWS)


def _together(batches: Iterator[CheckedTable]) -> Iterator[list[CheckedTable]]:
    """Yield lists of batches with about ``_ROWS`` rows."""
    several: list[CheckedTable] = []
    for batch in batches:
        several.append(batch)
        if sum(each.rows for each in several) >= _ROWS:
            yield several
            several = []
    if several:
        yield several


def _columns(batches: Sequence[CheckedTable], uncertainty: Uncertainty | None) -> ItemColumns:
    rates = [
        batch.numbers("rate") if uncertainty is None else _planning_rates(batch, uncertainty)
        for batch in batches
    ]
    return ItemColumns(np.concatenate(rates), _given(batches, "weight"), _given(batches, "cost"))


def _given(batches: Sequence[CheckedTable], name: str) -> Floats | None:
    if not any(name in batch for batch in batches):
        return None
    return np.concatenate([batch.numbers(name) for batch in batches])


def _belief(batch: CheckedTable, uncertainty: Uncertainty) -> tuple[Floats, Floats]:
    rates, low = batch.numbers("rate"), batch.numbers("low")
    certain = np.isnan(low) | ~np.isnan(batch.numbers("for_interval"))
    return rates, posterior_shape(rates, np.where(certain, rates, low), uncertainty.level)


def _planning_rates(batch: CheckedTable, uncertainty: Uncertainty) -> Floats:
    rates, shape = _belief(batch, uncertainty)
    polls, mean = batch.numbers("polls"), uncertainty.mean_log
    return uncertain_rate(rates, shape, polls, uncertainty.interval, mean_log=mean)


def _one_level(batch: CheckedTable, before: float | None) -> float | None:
    """Return the level of the column ``low``; raise ``InputError`` if the part has two levels."""
    levels = batch.numbers("level")
    if not levels.size:
        return before
    first = float(levels[0]) if before is None else before
    wrong = np.flatnonzero(levels != first)
    if wrong.size:
        row = int(wrong[0])
        raise batch.fault(row, "level", f"is {levels[row]:g}, another than above: one file has one level")
    return first


def _checked(batches: Iterator[CheckedTable]) -> Iterator[CheckedTable]:
    """Yield batches; raise ``UsageError`` for columns that only the plan of a single file can use."""
    for batch in batches:
        for name, is_used in (
            ("update_cost", lambda values: values > 0),
            ("min_frequency", lambda values: values > 0),
            ("max_frequency", np.isfinite),
        ):
            if name in batch and is_used(batch.numbers(name)).any():
                raise UsageError(_only_alone(batch.path, f"column {name!r}"))
        if "decay" in batch:
            kinds = batch.text("decay").encode().labels
            if any(kind != DECAY.empty_value for kind in kinds):
                raise UsageError(_only_alone(batch.path, "column 'decay'"))
        yield batch


def _only_alone(path: str, what: str) -> str:
    return f"{path}: {what} counts only in plans of one file without --on: leave the column empty"


def level_of(surveys: Sequence[PartSurvey], parts: Sequence[DatasetPart]) -> float | None:
    """Return the level of all parts with a column ``low``, None if there are none; raise ``InputError`` if
    two parts have different levels."""
    pairs = zip(surveys, parts, strict=True)
    found = [(own.level, part.path) for own, part in pairs if own.level is not None]
    for level, path in found:
        if level != found[0][0]:
            other = f"{found[0][1]} has {found[0][0]:g}"
            raise InputError(f"has the level {level:g}, and {other}: all parts need one level", path=path)
    return found[0][0] if found else None
