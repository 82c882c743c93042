"""The steps of an estimate over one bucket of polls: its totals and sample, and the rates of its items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh.cli.planning.datasets.output_folder import part_file
from afresh.cli.planning.datasets.poll_shuffle import read_bucket
from afresh.cli.planning.poll_log_rates import (
    change_point_columns,
    level_column,
    make_poll_table,
    write_rates,
)
from afresh.rates.common_belief import CommonBelief, PollTotals
from afresh.rates.item_sample import polls_of_sample, sample_keys
from afresh.rates.poll_table import PollTable
from afresh.rates.season import Season


@dataclass(frozen=True, slots=True)
class Bucket:
    """The polls of some items: the files that hold them (``read_bucket``), the columns of the log, the unit
    of time, and the Unix seconds from which times count."""

    number: int
    files: tuple[str, ...]
    row_group: int | None
    given: frozenset[str]
    unit_s: float
    start_s: float

    def read(self) -> tuple[Any, PollTable]:
        """Return a tuple (names of the items, polls)."""
        log = read_bucket(self.files, self.row_group, self.given)
        return log.names, make_poll_table(log, self.unit_s, self.start_s)


@dataclass(frozen=True, slots=True)
class BucketSurvey:
    """The totals of a bucket, and the sample of its items: their keys and polls. ``is_cut`` is whether more
    items of the bucket might be in the sample of the whole log."""

    totals: PollTotals
    keys: list[str]
    polls: PollTable
    is_cut: bool


def survey_bucket(job: tuple[Bucket, int]) -> BucketSurvey:
    """Return the totals of a bucket and its sample, of as many items as the job says."""
    bucket, number = job
    names, polls = bucket.read()
    keys = names.tolist()
    chosen = sample_keys(keys, number)
    sample = polls_of_sample(polls, chosen)
    return BucketSurvey(PollTotals.of(polls), [keys[at] for at in chosen], sample, len(keys) > number)


def totals_of_bucket(job: tuple[Bucket, Season]) -> PollTotals:
    """Return the totals of a bucket in the operational time of a season."""
    bucket, season = job
    return PollTotals.of(season.apply_to(bucket.read()[1]))


@dataclass(frozen=True, slots=True)
class BucketRates:
    """A bucket whose rates are to be written to ``target``, each with an interval of this ``level``."""

    bucket: Bucket
    target: str
    common: CommonBelief
    level: float


@dataclass(frozen=True, slots=True)
class RateSums:
    """What the summary says, summed over the items of a bucket."""

    items: int = 0
    polls: int = 0
    changes: int = 0
    unchanged_items: int = 0
    rates: float = 0.0
    change_points: int = 0
    changed_sharply: int = 0

    def __add__(self, other: RateSums) -> RateSums:
        return RateSums(*(getattr(self, name) + getattr(other, name) for name in RateSums.__slots__))


def estimate_bucket(job: BucketRates) -> RateSums:
    """Write the rates of the items of a bucket, and return their sums."""
    names, polls = job.bucket.read()
    found, sharp = job.common.estimate(polls, job.level)
    more = level_column(job.level, len(names))
    if job.common.jumps is not None and sharp is not None:
        more |= change_point_columns(sharp, polls, len(names))
    with part_file(job.target) as path:
        write_rates(path, names, found, more)
    return RateSums(
        len(names),
        int(found.polls.sum()),
        int(found.changes.sum()),
        int((found.changes == 0).sum()),
        float(found.rate.sum()),
        0 if sharp is None else int(sharp.item.size),
        0 if sharp is None else int(np.unique(sharp.item).size),
    )
